"""What the shipped, composed profiles are made of; run by scripts/compose_profiles.py."""
