"""What the kit for an app's own tests does in the database: databases of its own, and time that is moved.

Apps use the plugin `rowcall_worker.testing`.
"""
