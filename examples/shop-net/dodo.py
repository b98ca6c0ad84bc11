from pipeline import plan

DOIT_CONFIG, task_plan = plan(__file__)
