"""The gRPC API: the same operations as by HTTP, made from the same table.

`shapes` reads what each operation takes and answers, `schema` writes that as the published `tickwork.proto`, `codec`
turns messages into arguments and answers into messages, `gate` looks at what comes along with a call, `service` and
`health` answer calls, and `server` listens. The code in `gen` is made from the .proto by `make proto`.
"""
