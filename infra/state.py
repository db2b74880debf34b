"""The State stack: everything that remembers. It is deployed first and deleted last, or never."""

from __future__ import annotations

from aws_cdk import Duration, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from infra import environment, naming, settings
from infra.arns import Arns
from infra.deployment import Deployment
from infra.person import Person
from shared.contract import names, parts, table

_HAS_SORT_KEY = ("effects", "ledger", "history")
_EXPIRES = ("jobs", "effects", "ledger")


class StateStack(Stack):
    """Six tables, one bucket, one key, the list of lanes, four roles of people. Exposes what has no name of its own:
    stream and key."""

    def __init__(self, scope: Construct, construct_id: str, *, deployment: Deployment) -> None:
        stage = deployment.stage
        super().__init__(
            scope,
            construct_id,
            env=deployment.environment,
            stack_name=names.stack(stage.name, "State"),
            description=f"Penstock {stage.name}: tables, key and content store",
        )
        self._deployment = deployment
        self.tables = {name: self._table(name) for name in names.TABLES}
        self.content_key = kms.Key(
            self,
            "ContentKey",
            alias=naming.content_key_alias(stage.name),
            description=f"Penstock {stage.name}: text that customers wrote; its use is the access log",
            enable_key_rotation=True,
            removal_policy=deployment.removal_policy,
        )
        self.content = self._content_store()
        self.payload_rows = self._payload_rows()
        arns = Arns(stack=self, stage=stage, key_arn=self.content_key.key_arn)
        self.people = {who: Person(self, who.capitalize(), who=who, arns=arns) for who in names.ROLES}
        for parameter, told in settings.of_tools(stage).items():
            self._parameter(parameter, settings.text(told))

    @property
    def stream_arn(self) -> str:
        """The stream of the jobs table: the outbox."""
        arn: str | None = self.tables["jobs"].table_stream_arn
        assert arn is not None
        return arn

    def _table(self, name: str) -> dynamodb.TableV2:
        stage = self._deployment.stage
        is_jobs = name == "jobs"
        built = dynamodb.TableV2(
            self,
            name.capitalize(),
            table_name=names.table(stage.name, name),
            partition_key=_text(table.PK),
            sort_key=_text(table.SK) if name in _HAS_SORT_KEY else None,
            time_to_live_attribute=table.TTL if name in _EXPIRES else None,
            # Both images, for readers that must see what a row was; it cannot be changed later.
            dynamo_stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if is_jobs else None,
            billing=dynamodb.Billing.on_demand(),
            encryption=dynamodb.TableEncryptionV2.dynamo_owned_key(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=stage.retain,
            removal_policy=self._deployment.removal_policy,
        )
        if is_jobs:
            # Sparse: only a job that must wait, or has failed, has these two attributes. Keys suffice, since the
            # index nominates and the row decides.
            built.add_global_secondary_index(
                index_name=names.WAITING_INDEX,
                partition_key=_text(table.WAITING_PK),
                sort_key=_text(table.WAITING_SK),
                projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            )
        return built

    def _parameter(self, name: str, text: str) -> None:
        """A text for producers and tools; one that is too large for a parameter stands in parts of it."""
        try:
            first, *others = parts.in_parts(text)
        except parts.TooLarge as exc:
            raise ValueError(f"parameter {name} {exc}") from None
        construct_id = naming.title(name.rpartition("/")[2])
        ssm.StringParameter(self, construct_id, parameter_name=name, string_value=first)
        for number, part in enumerate(others, start=1):
            ssm.StringParameter(
                self,
                f"{construct_id}{number}",
                parameter_name=names.parameter_part(name, number),
                string_value=part,
            )

    def _payload_rows(self) -> dynamodb.TableV2:
        stage = self._deployment.stage
        built = dynamodb.TableV2(
            self,
            "ContentTable",
            table_name=names.table(stage.name, names.CONTENT_TABLE),
            partition_key=_text(table.PK),
            time_to_live_attribute=table.TTL,
            billing=dynamodb.Billing.on_demand(),
            # No recovery, no stream, no backup: what a customer wrote and had erased must be gone.
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=False
            ),
            deletion_protection=stage.retain,
            removal_policy=self._deployment.removal_policy,
        )
        # Said to CloudFormation itself: the construct takes a key only where the region is known before the deploy.
        cfn = built.node.default_child
        assert isinstance(cfn, dynamodb.CfnGlobalTable)
        cfn.add_property_override("SSESpecification", {"SSEEnabled": True, "SSEType": "KMS"})
        cfn.add_property_override("Replicas.0.SSESpecification", {"KMSMasterKeyId": self.content_key.key_arn})
        return built

    def _content_store(self) -> s3.Bucket:
        stage = self._deployment.stage
        return s3.Bucket(
            self,
            "Content",
            bucket_name=environment.content_bucket(stage, self),
            encryption=s3.BucketEncryption.KMS,
            encryption_key=self.content_key,
            bucket_key_enabled=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            # No versions: when a customer's text is erased, a delete must be the end of it. Objects are
            # written once and under their own id, so there is no older version to miss.
            versioned=False,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="expire",
                    expiration=Duration.days(stage.content_kept_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                )
            ],
            removal_policy=self._deployment.removal_policy,
        )


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
