"""`RunLane`: a lane whose jobs are taken by scheduled runs: its functions, their schedules, its dead letters."""

from __future__ import annotations

from aws_cdk import Stack, Tags
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra import environment, naming, queues, settings
from infra.arns import Arns
from infra.deployment import Deployment
from infra.function import PlatformFunction
from infra.grants import of_role
from infra.lane_parts import LANE_TAG, check_lane, dead_letter_queue, vendor_secret
from infra.schedules import ScheduledRun
from shared.contract import names
from shared.core.lane import LaneSpec, run_of


class RunLane(Construct):
    """A lane with runs, built from its entry in `config/`. It has no queue: nobody sends its jobs, runs take them."""

    def __init__(
        self, scope: Construct, construct_id: str, *, spec: LaneSpec, deployment: Deployment, key_arn: str
    ) -> None:
        check_lane(spec, deployment)
        super().__init__(scope, construct_id)
        self.spec = spec
        self._deployment = deployment
        stage = deployment.stage.name
        self.dead_letters = dead_letter_queue(self, spec.name, stage=stage, has_source=False)
        self.secret = vendor_secret(self, spec, deployment)
        self.failures = {of: self._failure_queue(of) for of in naming.RUN_FAILURES}
        self.functions = {role: self._function(role, key_arn) for role in spec.runs}
        self._schedule()
        Tags.of(self).add(LANE_TAG, spec.name)

    def _function(self, role: str, key_arn: str) -> PlatformFunction:
        stack, stage = Stack.of(self), self._deployment.stage
        secret_arn = self.secret.secret_arn if self.secret is not None else None
        return PlatformFunction(
            self,
            naming.title(role),
            deployment=self._deployment,
            name=names.run(self.spec.name, role),
            package=self.spec.name,
            entry=role,
            granted_as=of_role(role),
            arns=Arns(stack=stack, stage=stage, lane=self.spec.name, key_arn=key_arn, secret_arn=secret_arn),
            settings=settings.of_worker(self.spec, stage),
            also=environment.of_schedule(names.run(self.spec.name, role), self.spec.runs[role], stage),
            timeout_s=run_of(self.spec).function_timeout_s,
            memory_mb=self.spec.memory_mb,
            # Two at once would only be in each other's way: what one has claimed the other passes over.
            reserved=1 if stage.reserved_concurrency else None,
        )

    def _schedule(self) -> None:
        stage = self._deployment.stage.name
        group = scheduler.CfnScheduleGroup(self, "Schedules", name=naming.schedule_group(stage, self.spec.name))
        for role, period_s in self.spec.runs.items():
            if run_of(self.spec).function_timeout_s >= period_s:
                raise ValueError(
                    f"lanes.{self.spec.name}.runs.{role}: a run may take {run_of(self.spec).function_timeout_s} s,"
                    " so runs would overlap"
                )
            ScheduledRun(
                self,
                f"{naming.title(role)}Run",
                stage=stage,
                name=names.run(self.spec.name, role),
                period_s=period_s,
                function=self.functions[role].function,
                group=group,
                undelivered=self.failures["schedule"],
                failed_runs=self.failures["run"],
            )

    def _failure_queue(self, of: str) -> sqs.Queue:
        stage = self._deployment.stage.name
        return queues.failure_queue(
            self,
            f"{of.capitalize()}Failures",
            name=naming.failure_queue(stage, naming.run_failures(self.spec.name, of)),
            stage=stage,
        )
