"""Explains errors of S3 and of the connection to it: one line with a hint for each."""

from botocore import exceptions as boto
from botocore.exceptions import BotoCoreError, ClientError

from runner.errors import StoreError

CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
CLOCK = "set this machine's clock: requests carry the time"
AGAIN = "the same command again does what is left"
EXPIRED = "get new credentials; " + AGAIN
RIGHTS = "the key needs to list, read and write there: docs/storage.md has the policy"
REGION = "set AWS_REGION to the bucket's region"
REACH = "is the service up, and KDRUN_S3_ENDPOINT_URL its address?"

ANSWERS: dict[str, tuple[str, str]] = {
    "NoSuchBucket": ("no such bucket", "create it, or correct --store"),
    "InvalidBucketName": ("no name of a bucket", "correct --store"),
    "InvalidAccessKeyId": ("the service does not know this access key", CREDENTIALS),
    "SignatureDoesNotMatch": ("the secret key is wrong", CREDENTIALS),
    "InvalidToken": ("the session token is wrong", CREDENTIALS),
    "ExpiredToken": ("the credentials have expired", EXPIRED),
    "ExpiredTokenException": ("the credentials have expired", EXPIRED),
    "TokenRefreshRequired": ("the credentials have expired", EXPIRED),
    "RequestExpired": ("the request came too late", CLOCK),
    "RequestTimeTooSkewed": ("the clocks here and there differ too much", CLOCK),
    "AccessDenied": ("access denied", RIGHTS),
    "403": ("access denied", RIGHTS),
    "AllAccessDisabled": ("access denied", RIGHTS),
    "PermanentRedirect": ("the bucket is in another region", REGION),
    "301": ("the bucket is in another region", REGION),
    "AuthorizationHeaderMalformed": ("the bucket is in another region", REGION),
    "IllegalLocationConstraintException": ("the bucket is in another region", REGION),
    "SlowDown": ("the service kept asking to slow down", AGAIN),
    "ServiceUnavailable": ("the service is not available", AGAIN),
    "503": ("the service is not available", AGAIN),
    "InternalError": ("the service failed", AGAIN),
    "500": ("the service failed", AGAIN),
    "RequestTimeout": ("the connection was too slow", AGAIN),
    "BadDigest": ("what arrived was not what was sent", AGAIN),
    "InvalidDigest": ("what arrived was not what was sent", AGAIN),
    "XAmzContentSHA256Mismatch": ("what arrived was not what was sent", AGAIN),
    "NotImplemented": (
        "the service does not know a part of the request",
        "try KDRUN_S3_CHECKSUMS=when_required",
    ),
}
"""Meaning of each S3 error code, and a hint; by code."""

_LOGIN_ERROR = getattr(boto, "LoginError", boto.SSOError)
"""Error of an expired `aws login`; botocore before 1.41 does not have it."""

FAILURES: tuple[tuple[type[BotoCoreError], str, str], ...] = (
    (boto.NoCredentialsError, "no credentials", CREDENTIALS),
    (boto.PartialCredentialsError, "half of the credentials", CREDENTIALS),
    (boto.ProfileNotFound, "no such profile", "correct AWS_PROFILE"),
    (boto.SSOError, "the login has expired", "aws sso login, then " + AGAIN),
    (_LOGIN_ERROR, "the login has expired", "aws login, then " + AGAIN),
    (boto.CredentialRetrievalError, "no credentials", CREDENTIALS),
    (boto.TokenRetrievalError, "the login has expired", "aws sso login, then " + AGAIN),
    (boto.SSLError, "no trusted connection", "set AWS_CA_BUNDLE, or correct the endpoint"),
    (boto.ProxyConnectionError, "the proxy does not answer", "correct HTTPS_PROXY"),
    (boto.ConnectionError, "does not answer", REACH),
    (boto.HTTPClientError, "the connection broke", REACH),
    (boto.ParamValidationError, "no name of a bucket", "correct --store"),
    (boto.NoRegionError, "no region", REGION),
)
"""Meaning of botocore's own exceptions, and a hint; the first class that fits is used."""


def explain_error(uri: str, error: BaseException) -> StoreError:
    """Return a StoreError that says in one line what an exception means and what to do."""
    if isinstance(error, ClientError):
        code = str(error.response.get("Error", {}).get("Code", "?"))
        message = str(error.response.get("Error", {}).get("Message", "")).strip().split("\n")[0]
        meaning, hint = ANSWERS.get(code, (f"{code}: {message}", RIGHTS))
        return StoreError(f"{uri}: {meaning} ({error.operation_name})", hint=hint)
    line = str(error).strip().split("\n")[0]
    for kind, meaning, hint in FAILURES:
        if isinstance(error, kind):
            return StoreError(f"{uri}: {meaning}: {line}", hint=hint)
    if isinstance(error, ValueError):  # botocore raises it for an endpoint that is no URL
        return StoreError(f"{uri}: {line}", hint="correct KDRUN_S3_ENDPOINT_URL")
    return StoreError(f"{uri}: {type(error).__name__}: {line}", hint=REACH)
