"""What tasks carry: serializers, and the declared types of payloads and results."""
