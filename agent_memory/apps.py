from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentMemoryConfig(AppConfig):
    name = "agent_memory"
    verbose_name = _("Agent memory")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.core.signals import setting_changed

        from agent_memory import checks  # noqa: F401  importing it registers the checks

        setting_changed.connect(_forget, dispatch_uid="agent_memory")


def _forget(*, setting: str, **kwargs: object) -> None:
    """Let changed settings be read again."""
    if setting == "AGENT_MEMORY":
        from agent_memory import providers, stores

        providers.reset()
        stores.reset()
