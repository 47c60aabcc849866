"""What the page asks for: one module per subject, each with a table `ROUTES` that `app` mounts."""
