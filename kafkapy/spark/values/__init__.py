"""The values of a schema registry's serializers, as columns."""
