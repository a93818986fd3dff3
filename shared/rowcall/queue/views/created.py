"""Where the runs of a time begin in the order of ids, without an index of times.

A run takes its `created_at` at the same moment as its id.  So times grow with ids, except for moments, and a search by
halves finds the place in the primary key.  It stops early and leaves a margin, because the filter compares the times of
all runs in the range anyway.

If the database's clock is set back by more than the margin, the search can miss runs.  So only lists for people use it;
operations and erasing read all runs.
"""

from __future__ import annotations

from rowcall.queue.fragments import FROM_ALL_RUNS

# Smaller ranges are not halved.
NEAR = 1000

# How many seconds later a run with a lower id may have been created.
MARGIN_SECONDS = 600

# Each step reads the first run of the upper half.  With a negative margin, `low` is not above the id of any run created
# at the time or later; with a positive one, `high` is above the id of every run created before it.
BEGIN = f"""
WITH RECURSIVE halved(low, high) AS (
    (SELECT coalesce(min(id), 0), coalesce(max(id), 0) + 1 {FROM_ALL_RUNS})
    UNION ALL
    SELECT CASE WHEN is_before THEN middle.id + 1 ELSE low END, CASE WHEN is_before THEN high ELSE half END
    FROM halved CROSS JOIN LATERAL (VALUES ((low + high) / 2)) AS halves(half) LEFT JOIN LATERAL (
        SELECT id, created_at < %(moment)s::timestamptz + %(margin)s * interval '1 second' AS is_before
        {FROM_ALL_RUNS} WHERE id >= half AND id < high ORDER BY id LIMIT 1
    ) AS middle ON true
    WHERE high - low > %(near)s
)
SELECT low, high FROM halved ORDER BY high - low LIMIT 1
"""
