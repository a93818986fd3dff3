"""The mutants.  Each removes one guard from the queue, or one thing that an event does to the row.

They include what the table's CHECKs and keys guard a second time: a test then sees those work.  They do not include
what no test can tell from the original:

- `status` in an owner's statement and where a lease expires: the CHECK lease_iff_running ensures that a run with a
  locked_by or a locked_until is running.
- `id = ANY(...)` where many leases are written at once: it finds the rows, but the lease's key, which contains the id,
  decides.
- the inner LIMIT of the claim: it saves work, and the outer one decides.
- what is due, in the tick: it saves work, and nothing is decided before its time.
- `status` where the claim ends leases: one statement changes a row only once, and its claim comes first.
"""

from __future__ import annotations

from tests.mutants.listed.alerts import ALERTS
from tests.mutants.listed.cancel import CANCEL
from tests.mutants.listed.claim import CLAIM
from tests.mutants.listed.claim_limited import LIMITED
from tests.mutants.listed.clone import CLONE
from tests.mutants.listed.created import CREATED
from tests.mutants.listed.enqueue import ENQUEUE
from tests.mutants.listed.erase import ERASE
from tests.mutants.listed.erase_definitions import ERASE_DEFINITIONS
from tests.mutants.listed.failures import FAILURES
from tests.mutants.listed.finish import FINISH
from tests.mutants.listed.fragments import HISTORY
from tests.mutants.listed.handed_over import HANDED_OVER
from tests.mutants.listed.handover import HANDOVER
from tests.mutants.listed.idle import IDLE
from tests.mutants.listed.lease import LEASE
from tests.mutants.listed.operate import OPERATE
from tests.mutants.listed.operations import OPERATIONS
from tests.mutants.listed.prune import PRUNE
from tests.mutants.listed.run_log import RUN_LOG
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
    *HANDOVER,
    *HANDED_OVER,
    *SUSPECTS,
    *STRANDED,
    *SLEEPERS,
    *SWEEP,
    *HISTORY,
    *RUN_LOG,
    *FINISH,
    *CANCEL,
    *OPERATE,
    *CLONE,
    *ENQUEUE,
    *TICK,
    *IDLE,
    *PRUNE,
    *ERASE,
    *ERASE_DEFINITIONS,
    *OPERATIONS,
    *CREATED,
    *TIMESTAMPS,
    *ALERTS,
    *FAILURES,
)
