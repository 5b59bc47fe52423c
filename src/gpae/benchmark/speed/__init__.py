"""What ``gpae bench speed`` measures, one question a module."""
