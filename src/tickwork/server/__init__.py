"""The control plane: the HTTP and gRPC API, who may do what, the audit log, and the dashboard."""
