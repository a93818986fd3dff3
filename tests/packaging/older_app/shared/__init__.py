"""What the team's web and worker code share."""
