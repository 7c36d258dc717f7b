"""Pure decisions: plans, balance, combination, division of host and device budgets."""
