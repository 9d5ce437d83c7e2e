"""Pages for people: one HTML file that needs nothing else, to open in a browser, to print or to send to a colleague."""
