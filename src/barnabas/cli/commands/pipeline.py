"""`barnabas pipeline`: the warehouse pipeline on Spark, and traffic for it."""

from barnabas.cli.command import Command, noun_main
from barnabas.cli.commands.pipeline_generate import generate, generate_arguments
from barnabas.cli.commands.pipeline_run import run_arguments, run_pipeline
from barnabas.cli.commands.pipeline_status import status, status_arguments

VERBS = (
    Command("run", "run the pipeline", run_arguments, run_pipeline),
    Command("generate", "send sample events and changes to the ODS topics", generate_arguments, generate),
    Command("status", "lag and last batches of a pipeline", status_arguments, status),
)

main = noun_main("pipeline", "The warehouse pipeline: ODS topics to DWD and DIM topics, on Spark.", VERBS)
