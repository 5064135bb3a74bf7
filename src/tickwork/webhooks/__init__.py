"""Outgoing webhooks: chosen facts of the log are sent to endpoints of the configuration, signed and in order.

`feed.py` is the leader's duty: it reads the log and submits a delivery, which is a task, for each event that an
endpoint wants. `deliver.py` runs these tasks, on a queue and in slots of their own for each endpoint. `health.py`
counts failures in a row and switches a dead endpoint off, by a pause of its queue. `admin.py` is what people do with
them.
"""
