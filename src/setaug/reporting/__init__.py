"""Reports: self-contained HTML pages and pictures of order graphs, from one builder and one style sheet."""
