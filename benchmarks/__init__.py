"""What is run by hand and leaves its figures under results/."""
