"""Groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; the leading member assigns."""
