"""The built-in document set `liara`: where the official docs come from."""

from app.data_files import data_path
from app.models import DocumentSetSpec

LIARA_SET_ID = "liara"
LIARA_URL_PREFIX = "https://docs.liara.ir/"

LIARA_SPEC = DocumentSetSpec(
    id=LIARA_SET_ID,
    source="https://github.com/liara-cloud/docs.git",
    desc="The documentation of Liara (liara.ir), an Iranian cloud: mostly Persian, some English.",
    ref="master",
    include=("public/llms/**/*.md",),
    url_prefix=LIARA_URL_PREFIX,
    questions=str(data_path("liara", "questions.jsonl")),
)
