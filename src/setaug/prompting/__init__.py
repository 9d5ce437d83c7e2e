"""Few-shot prompts for language models, and answers parsed as sets."""

from setaug.prompting.model import PromptedSetModel, PromptReport
from setaug.prompting.prompt import FewShotPrompt
from setaug.prompting.reading import AnswerReader
from setaug.settings import Endpoint

__all__ = ["AnswerReader", "Endpoint", "FewShotPrompt", "PromptReport", "PromptedSetModel"]
