"""Who may use the console: passwords, sessions, the limit on attempts, and whose rights a request has."""
