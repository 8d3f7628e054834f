"""The controller: state machines over the ZkStore and BrokerSender ports.

May import `zk`, `common`. Start with `controller`.
"""
