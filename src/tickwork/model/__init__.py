"""What there is: tasks, schedules, members and facts, and the table of what can happen to a task."""
