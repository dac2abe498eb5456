"""What is shown: tables, figures, files, traces, the glossary."""
