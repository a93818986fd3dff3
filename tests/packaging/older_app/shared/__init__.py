"""Code that the team's web and worker processes share."""
