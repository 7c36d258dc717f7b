"""The values that transfer passes around: tasks, views, options, costs, rates, records."""
