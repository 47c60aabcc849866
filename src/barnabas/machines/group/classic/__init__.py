"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; the leader of the members assigns."""
