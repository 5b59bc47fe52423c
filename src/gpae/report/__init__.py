"""Pages that show an answer to people: self-contained HTML, no scripts, nothing fetched."""
