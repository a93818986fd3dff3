"""Alerts: conditions that a worker checks when it ticks, and the incidents in which they hold.

The receivers get one message when an incident begins, and one when it ends.
"""

from rowcall.alerts.conditions import Alert
from rowcall.alerts.incidents import begin_test, list_incidents
from rowcall.alerts.message import ALERT, compose
from rowcall.alerts.pings import Pings
from rowcall.alerts.watch import Watch
from rowcall.alerts.words import opened_title

__all__ = [
    "ALERT",
    "Alert",
    "Pings",
    "Watch",
    "begin_test",
    "compose",
    "list_incidents",
    "opened_title",
]
