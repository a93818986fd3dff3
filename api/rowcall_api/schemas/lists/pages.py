"""The size, the cursor and the order of a page, and which fields its entries have."""

from __future__ import annotations

from rowcall.queue.views.pages import Order
from rowcall_api.schemas.fields import page_cursor, page_limit, page_order
from rowcall_api.schemas.lists.chosen import FieldsQuery


class PageQuery(FieldsQuery):
    """A page of a list that begins with the newest entry."""

    limit = page_limit()
    cursor = page_cursor()
    order = page_order()


class FilteredPageQuery(PageQuery):
    """A page of such a list with filters."""

    cursor = page_cursor(filtered=True)


class OldestFirstQuery(PageQuery):
    """A page of a list that begins with the oldest entry."""

    order = page_order(Order.ASC)
