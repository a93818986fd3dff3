"""/v1/audit: who changed what."""

from __future__ import annotations

from typing import Any

from rowcall.queue.views.audit import AuditFilter
from rowcall.queue.views.audit import list_audit as audit_page
from rowcall_api.http.auth import needs
from rowcall_api.http.body import BodyBlueprint
from rowcall_api.http.database import transaction
from rowcall_api.schemas.audit import AuditListSchema, AuditQuery
from rowcall_api.standby.requests import standby_may_answer

blueprint = BodyBlueprint("audit", __name__, url_prefix="/v1/audit", description="Who changed what.")


@blueprint.get("")
@standby_may_answer
@blueprint.arguments(AuditQuery, location="query")
@blueprint.response(200, AuditListSchema)
@needs("admin")
def list_audit(query: dict[str, Any]) -> dict[str, Any]:
    """List the matching changes by operators, the newest first."""
    limit, cursor, order = (query.pop(name) for name in ("limit", "cursor", "order"))
    criteria = AuditFilter(**query)
    with transaction() as connection:
        page = audit_page(connection, criteria, limit, cursor, order=order)
    return {"items": page.rows, "next": page.next}
