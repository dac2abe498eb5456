"""Pictures of predictions; one module per picture, matplotlib imported when one is drawn."""
