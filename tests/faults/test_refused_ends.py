"""An app's trigger refuses the end of one run: the worker writes the others, and says which one is left."""

from __future__ import annotations

import pytest

from tests.support.processes import rowcall
from tests.support.shop import Shop

REFUSES = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.payload ->> 'order_id' = '7' AND OLD.status = 'running' AND NEW.status <> 'running' THEN
        RAISE EXCEPTION 'not this order' USING ERRCODE = '{code}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON rowcall.job_runs FOR EACH ROW EXECUTE FUNCTION public.refuse()
"""


@pytest.fixture
def shop(environment: dict[str, str], fresh_url: str) -> Shop:
    return Shop(environment, fresh_url)


@pytest.mark.parametrize("code", ["40001", "57014", "P0001", "23503", "22023"])
@pytest.mark.parametrize("ends", ["well", "with a log", "badly"])
def test_a_run_whose_end_is_refused_holds_up_no_other(shop: Shop, ends: str, code: str) -> None:
    runs = {order_id: shop.ask("shop_pack", order_id=order_id, ends=ends) for order_id in range(5, 10)}
    shop.sql(REFUSES.format(code=code))
    worked = rowcall(shop.environment, "worker", "once")
    statuses = {order: shop.row(run_id)["status"] for order, run_id in runs.items()}
    assert statuses.pop(7) == "running"
    assert "running" not in statuses.values()
    assert "not this order" in worked.stderr
    assert "Traceback" not in worked.stderr
