class EventEmitter:
    """Callbacks for named events."""

    def __init__(self):
        """Make an emitter without callbacks."""
        raise NotImplementedError

    def on(self, event, callback):
        """Register a callback for an event."""
        raise NotImplementedError

    def once(self, event, callback):
        """Register a callback for the next time an event is emitted."""
        raise NotImplementedError

    def off(self, event, callback):
        """End the oldest registration of a callback; return whether there was one."""
        raise NotImplementedError

    def count(self, event):
        """Return the number of registrations for an event."""
        raise NotImplementedError

    def emit(self, event, *args, **kwargs):
        """Call the callbacks of an event in order; return how many were called."""
        raise NotImplementedError
