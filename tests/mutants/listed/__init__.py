"""The mutants.  Each takes one guard from the queue, or one thing that an event does to the row.

What the table's own CHECKs and keys guard a second time is here as well: then it is they that a test sees at work.
Left out is what no test can tell from the original:

- `status` in an owner's statement and where a lease runs out: the CHECK lease_iff_running says that who has a locked_by
  or a locked_until is running.
- `id = ANY(...)` where many leases are written at once: it finds the rows, and the lease's key, which holds the id,
  decides.
- the inner LIMIT of the claim: it spares work, and the outer one decides.
- what is due, in the tick: it spares work, and nothing is decided of what has not come.
- `status` where the claim ends leases: one statement changes a row only once, and its claim comes first.
"""

from __future__ import annotations

from tests.mutants.listed.bulk import BULK
from tests.mutants.listed.cancel import CANCEL
from tests.mutants.listed.claim import CLAIM
from tests.mutants.listed.claim_limited import LIMITED
from tests.mutants.listed.clone import CLONE
from tests.mutants.listed.enqueue import ENQUEUE
from tests.mutants.listed.finish import FINISH
from tests.mutants.listed.fragments import HISTORY
from tests.mutants.listed.lease import LEASE
from tests.mutants.listed.operate import OPERATE
from tests.mutants.listed.prune import PRUNE
from tests.mutants.listed.sleepers import SLEEPERS
from tests.mutants.listed.stranded import STRANDED
from tests.mutants.listed.suspects import SUSPECTS
from tests.mutants.listed.sweep import SWEEP
from tests.mutants.listed.tick import TICK
from tests.mutants.listed.timestamps import TIMESTAMPS

MUTANTS = (
    *CLAIM,
    *LIMITED,
    *LEASE,
    *SUSPECTS,
    *STRANDED,
    *SLEEPERS,
    *SWEEP,
    *HISTORY,
    *FINISH,
    *CANCEL,
    *OPERATE,
    *CLONE,
    *ENQUEUE,
    *TICK,
    *PRUNE,
    *BULK,
    *TIMESTAMPS,
)
