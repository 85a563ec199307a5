"""Random rules files, documents and requests from a seed.

Expressions are typed, so that most of them have a value; a small share has an operand of another type. Rules read the
same fields that documents and filters have, so that grants and denials are both frequent.
"""

import random

FIELDS = {
    "int": ["n", "k"], "float": ["f"], "string": ["s", "owner"], "bool": ["b"], "list": ["l", "tags"], "map": ["m"],
    "timestamp": ["t"], "path": ["r"], "bytes": ["y"], "null": ["z"],
}
TYPES = ["int", "float", "string", "bool", "list", "map", "path", "timestamp", "duration", "set", "bytes", "null"]
STRINGS = ["", "a", "b", "u1", "u2", "ab", "A-b", " a ", "x1", "é", "a,b,c", "10", "1.5", "😀", "look"]
PATTERNS = ["a*", "[a-z]+", "u\\\\d", "(a|b)+", ".*", "(?i)A.*", "a{1,2}", "[^,]+", "\\\\w+\\\\W?", "^ab?$", ",", "\\\\b"]
CALLERS = [
    None,
    {"sub": "u1", "admin": True, "name": "ab", "level": 3, "roles": ["a", "x1"], "deep": {"n": 1, "s": "a"}},
    {"sub": "u2", "admin": False, "name": "b", "level": 1, "roles": [], "email": "u2@example.com"},
]
COLLECTIONS = 24


class Expressions:
    """Random expressions of the rules language."""

    def __init__(self, rng):
        self.rng = rng
        # Names in scope: the wildcard, parameters and lets, each with its type.
        self.names = []
        self.functions = []

    def of(self, kind, depth):
        """An expression of a type. Its operands are nested to a depth."""
        if self.rng.random() < 0.03:
            kind = self.rng.choice(TYPES)
        visible = [name for name, name_kind in self.names if name_kind == kind]
        if visible and self.rng.random() < 0.25:
            return self.rng.choice(visible)
        if depth <= 0 or self.rng.random() < 0.15:
            return self.leaf(kind)
        return getattr(self, "a_" + kind)(depth - 1)

    def some(self, depth):
        """An expression of any type."""
        return self.of(self.rng.choice(TYPES), depth)

    def field(self, kind):
        base = self.rng.choice(["resource.data", "resource.data", "request.resource.data", "get(%s).data" % self.stored()])
        names = FIELDS.get(kind)
        if not names:
            return None
        name = self.rng.choice(names)
        return self.rng.choice([f"{base}.{name}", f"{base}['{name}']", f"{base}.get('{name}', {self.literal(kind)})"])

    def stored(self):
        return "/databases/$(database)/documents/look/" + self.rng.choice(["a", "b"])

    def literal(self, kind):
        pick = self.rng.choice
        return {
            "int": lambda: str(pick([0, 1, 2, 3, 5, 10, -1, 100])),
            "float": lambda: pick(["0.0", "1.0", "1.5", "-2.5", "3.0"]),
            "string": lambda: "'" + pick(STRINGS) + "'",
            "bool": lambda: pick(["true", "false"]),
            "list": lambda: pick(["[]", "[1, 2]", "['a', 'b']", "['a', 1, null]", "[1.0]", "[[1], {'a': 1}]"]),
            "map": lambda: pick(["{}", "{'a': 1}", "{'n': 1, 's': 'a'}", "{'x': {'y': [1]}}"]),
            "path": lambda: pick(["/databases/$(database)/documents/look/a", "/a/b", "request.path", "path('a/{x}/c')"]),
            "timestamp": lambda: pick(["timestamp.date(2020, 2, 29)", "timestamp.value(1000)", "request.time"]),
            "duration": lambda: pick(["duration.value(90, 's')", "duration.time(1, 2, 3, 4)", "duration.value(-1, 'd')"]),
            "set": lambda: pick(["[1, 2].toSet()", "['a'].toSet()", "[].toSet()"]),
            "bytes": lambda: pick(["b'a'", "b''", "'ab'.toUtf8()"]),
            "null": lambda: "null",
        }[kind]()

    def leaf(self, kind):
        choice = self.rng.random()
        if kind == "string" and choice < 0.3:
            return self.rng.choice(["id", "request.auth.uid", "request.method", "request.auth.token.name", "database"])
        if kind == "bool" and choice < 0.2:
            return "request.auth.token.admin"
        if kind == "int" and choice < 0.15:
            return self.rng.choice(["request.auth.token.level", "request.query.limit", "request.query.offset"])
        if kind == "map" and choice < 0.4:
            return self.rng.choice(["resource.data", "request.resource.data", "request.auth.token.deep", "resource"])
        if kind == "null" and choice < 0.5:
            return self.rng.choice(["request.auth", "resource", "request.resource", "request.query.limit"])
        if choice < 0.65:
            field = self.field(kind)
            if field:
                return field
        return self.literal(kind)

    def function(self, kind, depth):
        candidates = [f for f in self.functions if f[2] == kind]
        if not candidates:
            return self.leaf(kind)
        name, parameters, _ = self.rng.choice(candidates)
        return f"{name}({', '.join(self.of(p, depth) for p in parameters)})"

    def a_bool(self, d):
        of, pick = self.of, self.rng.choice
        kind = pick(["int", "float", "string", "timestamp", "duration", "int", "string", "bytes"])
        equal = pick(TYPES)
        number = pick(["int", "float"])
        options = [
            lambda: f"({of('bool', d)} {pick(['&&', '||'])} {of('bool', d)})",
            lambda: f"({of('bool', d)} {pick(['&&', '||'])} {of('bool', d)})",
            lambda: f"!({of('bool', d)})",
            lambda: f"({of('bool', d)} ? {of('bool', d)} : {of('bool', d)})",
            lambda: f"({of(kind, d)} {pick(['<', '<=', '>', '>=', '==', '!='])} {of(kind, d)})",
            lambda: f"({of(equal, d)} {pick(['==', '!='])} {of(equal, d)})",
            lambda: f"({of(number, d)} {pick(['<', '>=', '==', '!='])} {of(pick(['int', 'float']), d)})",
            lambda: f"({self.some(d)} in {of(pick(['list', 'set', 'list']), d)})",
            lambda: f"({of('string', d)} in {of('map', d)})",
            lambda: f"({self.some(d)} is {pick(['int', 'float', 'number', 'string', 'bool', 'list', 'map', 'path', 'timestamp', 'duration', 'bytes', 'latlng', 'set', 'map_diff', 'constraint'])})",
            lambda: f"{of('list', d)}.{pick(['hasAny', 'hasAll', 'hasOnly'])}({of('list', d)})",
            lambda: f"{of('set', d)}.{pick(['hasAny', 'hasAll', 'hasOnly'])}({of(pick(['set', 'list']), d)})",
            lambda: f"{of('string', d)}.matches('{pick(PATTERNS)}')",
            lambda: f"exists(/databases/$(database)/documents/look/{pick(['a', 'b', 'none', '$(id)', '$(request.auth.uid)'])})",
            lambda: f"existsAfter(/databases/$(database)/documents/{pick(['look', '$(request.path[3])'])}/{pick(['a', 'new', '$(id)'])})",
            lambda: f"({of('null', d)} == null)",
            lambda: self.function("bool", d),
            lambda: f"math.isNaN({of('float', d)})",
        ]
        return pick(options)()

    def a_int(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"({of('int', d)} {pick(['+', '-', '*', ' / ', '%'])} {of('int', d)})",
            lambda: f"{of(pick(['list', 'map', 'set', 'string', 'bytes', 'list']), d)}.size()",
            lambda: f"int({of(pick(['float', 'string', 'int']), d)})",
            lambda: f"{of('list', d)}[{pick([0, 1, 2])}]",
            lambda: f"{of('timestamp', d)}.{pick(['year', 'month', 'day', 'dayOfWeek', 'dayOfYear', 'hours', 'minutes', 'seconds', 'nanos', 'toMillis'])}()",
            lambda: f"{of('duration', d)}.{pick(['seconds', 'nanos'])}()",
            lambda: f"math.{pick(['abs', 'round'])}({of(pick(['int', 'float']), d)})",
            lambda: f"-({of('int', d)})",
            lambda: f"{of('map', d)}.get({pick(['[' + chr(39) + 'm' + chr(39) + ', ' + chr(39) + 'x' + chr(39) + ']', of('string', d)])}, {of('int', d)})",
            lambda: self.function("int", d),
        ])()

    def a_float(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"({of('float', d)} {pick(['+', '-', '*', ' / ', '%'])} {of(pick(['float', 'int']), d)})",
            lambda: f"float({of(pick(['int', 'string', 'float']), d)})",
            lambda: f"math.{pick(['ceil', 'floor', 'sqrt'])}({of(pick(['float', 'int']), d)})",
            lambda: f"math.pow({of('float', d)}, {of(pick(['float', 'int']), d)})",
        ])()

    def a_string(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"({of('string', d)} + {of('string', d)})",
            lambda: f"{of('string', d)}.{pick(['lower', 'upper', 'trim'])}()",
            lambda: f"string({of(pick(['int', 'bool', 'string', 'float', 'path', 'null']), d)})",
            lambda: f"{of('string', d)}.replace('{pick(PATTERNS[:8])}', {of('string', d)})",
            lambda: f"{of('string', d)}[{pick([0, 1])}:{pick([1, 2, 3])}]",
            lambda: f"{of('list', d)}.join({of('string', d)})",
            lambda: f"{of('path', d)}[{pick([1, 3, 4])}]",
            lambda: f"{of('bytes', d)}.{pick(['toHexString', 'toBase64'])}()",
            lambda: self.function("string", d),
        ])()

    def a_list(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"[{', '.join(self.some(d) for _ in range(self.rng.randint(0, 3)))}]",
            lambda: f"{of('map', d)}.{pick(['keys', 'values'])}()",
            lambda: f"{of('list', d)}.{pick(['concat', 'removeAll'])}({of('list', d)})",
            lambda: f"{of('string', d)}.split('{pick(PATTERNS[:8] + [','])}')",
            lambda: f"{of('list', d)}[{pick([0, 1])}:{pick([1, 2])}]",
            lambda: "request.auth.token.roles",
        ])()

    def a_map(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: "{" + ", ".join(f"'{k}': {self.some(d)}" for k in self.rng.sample(["a", "n", "s", "x"], self.rng.randint(0, 3))) + "}",
            lambda: f"get({self.stored()}).data",
            lambda: f"{of('map', d)}.get('{pick(['m', 'x', 'a'])}', {of('map', d)})",
            lambda: f"{pick(['getAfter', 'get'])}(/databases/$(database)/documents/look/a).data",
        ])()

    def a_path(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"/databases/$(database)/documents/look/$({of(pick(['string', 'int']), d)})",
            lambda: f"path({of('string', d)})",
            lambda: f"path('/a/{{x}}').bind({{'x': {of('string', d)}}})",
            lambda: "resource.__name__",
            lambda: f"/{pick(['a', 'b'])}/$({of('string', d)})",
        ])()

    def a_set(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"{of('list', d)}.toSet()",
            lambda: f"{of('map', d)}.diff({of('map', d)}).{pick(['affectedKeys', 'addedKeys', 'removedKeys', 'changedKeys', 'unchangedKeys'])}()",
            lambda: f"{of('set', d)}.{pick(['union', 'intersection', 'difference'])}({of('set', d)})",
        ])()

    def a_timestamp(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"({of('timestamp', d)} {pick(['+', '-'])} {of('duration', d)})",
            lambda: f"timestamp.value({of('int', d)})",
            lambda: f"timestamp.date({of('int', d)}, {pick([1, 2, 12, 13])}, {pick([1, 29, 31])})",
            lambda: f"{of('timestamp', d)}.date()",
        ])()

    def a_duration(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"duration.value({of('int', d)}, '{pick(['w', 'd', 'h', 'm', 's', 'ms', 'ns'])}')",
            lambda: f"({of('duration', d)} {pick(['+', '-'])} {of('duration', d)})",
            lambda: f"{of('timestamp', d)}.time()",
            lambda: f"duration.abs({of('duration', d)})",
            lambda: f"(timestamp.date(2020, 1, {pick([1, 2, 31])}) - {of('timestamp', d)})",
        ])()

    def a_bytes(self, d):
        of, pick = self.of, self.rng.choice
        return pick([
            lambda: f"hashing.{pick(['md5', 'sha256', 'crc32', 'crc32c'])}({of(pick(['string', 'bytes']), d)})",
            lambda: f"{of('string', d)}.toUtf8()",
        ])()

    def a_null(self, d):
        return self.leaf("null")


def rules_file(rng):
    """A rules file with a block for each of the collections c0, c1, …."""
    expressions = Expressions(rng)
    functions = []
    for index in range(5):
        result = rng.choice(["bool", "bool", "int", "string"])
        parameters = [rng.choice(TYPES) for _ in range(rng.randint(0, 3))]
        inner = Expressions(rng)
        inner.functions = list(expressions.functions)
        inner.names = [(f"p{i}", kind) for i, kind in enumerate(parameters)]
        lets = []
        for i in range(rng.randint(0, 2)):
            kind = rng.choice(TYPES)
            lets.append(f"let v{i} = {inner.of(kind, 2)};")
            inner.names.append((f"v{i}", kind))
        # `id` is not in scope of a function of the outer block.
        body = f"{' '.join(lets)} return {inner.of(result, 2)};"
        names = ", ".join(f"p{i}" for i in range(len(parameters)))
        functions.append(f"function g{index}({names}) {{ {body} }}")
        expressions.functions.append((f"g{index}", parameters, result))
    blocks = []
    for index in range(COLLECTIONS):
        name = f"c{index}"
        pattern = rng.choice([f"/{name}/{{id}}"] * 6 + [f"/{name}/{{rest=**}}", f"/{{up=**}}/{name}/{{id}}", f"/{name}/a"])
        expressions.names = [("id", "string")] if "{id}" in pattern else []
        allows = []
        for methods in rng.choice([["get", "list", "create", "update", "delete"], ["read", "write"], ["read", "create, update", "delete"]]):
            condition = expressions.of("bool", rng.choice([1, 2, 2, 3]))
            if rng.random() < 0.7:
                condition = f"({guard(rng)}) {rng.choice(['&&', '||', '||'])} {condition}"
            allows.append(f"allow {methods}: if {condition};")
        nested = ""
        if rng.random() < 0.3 and "{id}" in pattern and "=**" not in pattern:
            expressions.names = [("id", "string"), ("child", "string")]
            nested = f"match /s/{{child}} {{ allow read, write: if {expressions.of('bool', 2)}; }}"
        blocks.append(f"match {pattern} {{\n  {chr(10).join(allows)}\n  {nested}\n}}")
    version = "2" if rng.random() < 0.9 else "1"
    if version == "1":
        blocks = [b.replace("{up=**}/", "") for b in blocks]
        blocks = [b.replace("match //", "match /") for b in blocks]
    return (
        f"rules_version = '{version}';\nservice cloud.firestore {{\nmatch /databases/{{database}}/documents {{\n"
        + "\n".join(functions + blocks) + "\n}\n}\n")


def guard(rng):
    """A condition such as authors of rules typically write."""
    return rng.choice([
        "request.auth != null", "resource.data.owner == request.auth.uid", "resource == null", "resource.data.b == true",
        "request.resource.data.owner == request.auth.uid", "resource.data.n > 1", "resource.data.n >= 2",
        "resource.data.n < 5 || resource.data.b", "request.auth.uid in resource.data.tags", "'a' in resource.data.l",
        "request.query.limit <= 10", "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['n', 's'])",
        "request.resource.data.keys().hasAll(['n', 's'])", "request.resource.data.n is int", "resource.data.m.x == 1",
        "request.resource.data.t == request.time", "resource.data.s in ['a', 'b']", "resource.data.f != 1.5",
        "get(/databases/$(database)/documents/look/a).data.n == 1", "request.auth.token.admin == true",
        "exists(/databases/$(database)/documents/look/$(request.auth.uid))", "!(resource.data.n > 2)",
        "resource.data.z == null", "resource.data.s != null", "resource.data.tags.hasAny(['a', 'x1'])",
        "getAfter(/databases/$(database)/documents/look/b).data.n == resource.data.n",
    ])


# Documents and requests, in the JSON form of the REST API.

def value(rng, kind):
    pick = rng.choice
    return {
        "int": lambda: {"integerValue": str(pick([0, 1, 2, 3, 5, 10, -1]))},
        "float": lambda: {"doubleValue": pick([0.0, 1.0, 1.5, -2.5, 3.0, "NaN"])},
        "string": lambda: {"stringValue": pick(STRINGS)},
        "bool": lambda: {"booleanValue": pick([True, False])},
        "list": lambda: {"arrayValue": {"values": [value(rng, pick(["int", "string", "string", "float", "null"])) for _ in range(rng.randint(0, 3))]}},
        "map": lambda: {"mapValue": {"fields": {k: value(rng, pick(["int", "string"])) for k in rng.sample(["a", "x", "y"], rng.randint(0, 3))}}},
        "timestamp": lambda: {"timestampValue": pick(["2020-02-29T00:00:00Z", "1970-01-01T00:00:01Z", "2024-06-30T23:59:59.123456Z"])},
        "path": lambda: {"referenceValue": "projects/demo-rules/databases/(default)/documents/look/" + pick(["a", "none"])},
        "bytes": lambda: {"bytesValue": pick(["YQ==", "", "YWI="])},
        "null": lambda: {"nullValue": None},
    }[kind]()


def fields(rng):
    result = {}
    for kind, names in FIELDS.items():
        for name in names:
            if rng.random() < 0.75:
                result[name] = value(rng, kind if rng.random() < 0.95 else rng.choice(list(FIELDS)))
    if rng.random() < 0.5:
        result["owner"] = {"stringValue": rng.choice(["u1", "u2"])}
    return result


ROOT = "projects/demo-rules/databases/(default)/documents"


def documents(rng):
    """The stored documents: path to fields."""
    result = {f"look/{name}": fields(rng) for name in ["a", "b", "u1"]}
    for index in range(COLLECTIONS):
        for name in ["a", "b"]:
            result[f"c{index}/{name}"] = fields(rng)
        if index % 3 == 0:
            result[f"c{index}/a/s/x"] = fields(rng)
    return result


def field_filter(rng, name=None, kind=None):
    kind = kind or rng.choice(["int", "int", "string", "bool", "float", "list", "map", "null"])
    name = name or rng.choice(FIELDS[kind])
    path = {"fieldPath": name if kind != "map" else "m.x"}
    if kind == "map":
        kind = "int"
    if kind == "null":
        return {"unaryFilter": {"field": path, "op": rng.choice(["IS_NULL", "IS_NOT_NULL"])}}
    if kind == "list":
        return {"fieldFilter": {"field": path, "op": "ARRAY_CONTAINS", "value": value(rng, "string")}}
    op = rng.choice(["EQUAL", "EQUAL", "EQUAL", "LESS_THAN", "GREATER_THAN", "GREATER_THAN_OR_EQUAL", "LESS_THAN_OR_EQUAL", "NOT_EQUAL", "IN"])
    operand = value(rng, kind if rng.random() < 0.9 else rng.choice(["int", "float", "string"]))
    if op == "IN":
        operand = {"arrayValue": {"values": [operand, value(rng, kind)]}}
    return {"fieldFilter": {"field": path, "op": op, "value": operand}}


def structured_query(rng, collection):
    query = {"from": [{"collectionId": collection}]}
    if rng.random() < 0.2:
        query["from"][0]["allDescendants"] = True
    filters = [field_filter(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 2]))]
    if rng.random() < 0.4:
        filters.append(rng.choice([
            {"fieldFilter": {"field": {"fieldPath": "owner"}, "op": "EQUAL", "value": {"stringValue": rng.choice(["u1", "u2"])}}},
            {"fieldFilter": {"field": {"fieldPath": "b"}, "op": "EQUAL", "value": {"booleanValue": True}}},
            {"fieldFilter": {"field": {"fieldPath": "n"}, "op": "GREATER_THAN", "value": {"integerValue": rng.choice(["1", "2", "4"])}}},
        ]))
    if len(filters) == 1:
        query["where"] = filters[0]
    elif filters:
        query["where"] = {"compositeFilter": {"op": "OR" if rng.random() < 0.25 else "AND", "filters": filters}}
    if rng.random() < 0.4:
        query["limit"] = rng.choice([0, 1, 5, 10, 20])
    if rng.random() < 0.1:
        query["offset"] = rng.choice([1, 2])
    return query


def write(rng, name, stored):
    """One write of a commit."""
    document = f"{ROOT}/{name}"
    choice = rng.random()
    result = {}
    if choice < 0.2:
        result = {"delete": document}
    else:
        changed = fields(rng)
        if stored and rng.random() < 0.6:
            changed = {**stored, **{k: changed[k] for k in list(changed)[: rng.randint(0, 2)]}}
        result = {"update": {"name": document, "fields": changed}}
        if rng.random() < 0.35:
            names = rng.sample(["n", "s", "b", "m.x", "owner"], rng.randint(0, 2))
            result["updateMask"] = {"fieldPaths": names}
        if rng.random() < 0.3:
            result["updateTransforms"] = [rng.choice([
                {"fieldPath": "t", "setToServerValue": "REQUEST_TIME"},
                {"fieldPath": "n", "increment": {"integerValue": "1"}},
                {"fieldPath": "tags", "appendMissingElements": {"values": [{"stringValue": "a"}]}},
                {"fieldPath": "l", "removeAllFromArray": {"values": [{"stringValue": "a"}]}},
            ])]
    if rng.random() < 0.2:
        result["currentDocument"] = {"exists": rng.random() < 0.6}
    return result


def requests(rng, count, stored):
    """Random requests as tuples: caller, method, path, body, and the names of the documents that the request writes."""
    for _ in range(count):
        caller = rng.choice(CALLERS)
        collection = f"c{rng.randrange(COLLECTIONS)}"
        name = f"{collection}/{rng.choice(['a', 'b', 'none'])}"
        if rng.random() < 0.1:
            name = f"{collection}/a/s/{rng.choice(['x', 'none'])}"
        kind = rng.choices(
            ["get", "batchGet", "list", "query", "aggregate", "commit", "patch", "delete", "create"],
            [20, 4, 5, 25, 6, 25, 6, 4, 5])[0]
        if kind == "get":
            yield caller, "GET", f"/{name}", None, []
        elif kind == "batchGet":
            names = [name, f"{collection}/{rng.choice(['a', 'b'])}", "look/a"][: rng.randint(1, 2)]
            yield caller, "POST", ":batchGet", {"documents": [f"{ROOT}/{n}" for n in dict.fromkeys(names)]}, []
        elif kind == "list":
            # Without a page size, the emulator uses 30, and rules see 30 as the limit. On Hearth they see null.
            size = rng.choice(["?pageSize=2", "?pageSize=10", "?pageSize=5&orderBy=n%20desc"])
            yield caller, "GET", f"/{collection}{size}", None, []
        elif kind == "query":
            yield caller, "POST", ":runQuery", {"structuredQuery": structured_query(rng, rng.choice([collection] * 8 + ["s"]))}, []
        elif kind == "aggregate":
            query = structured_query(rng, collection)
            query.pop("limit", None)
            body = {"structuredAggregationQuery": {"structuredQuery": query, "aggregations": [{"alias": "c", "count": {}}]}}
            yield caller, "POST", ":runAggregationQuery", body, []
        elif kind == "commit":
            names = [name]
            if rng.random() < 0.3:
                names.append(rng.choice([name, f"{collection}/b", f"c{rng.randrange(COLLECTIONS)}/a"]))
            yield caller, "POST", ":commit", {"writes": [write(rng, n, stored.get(n)) for n in names]}, names
        elif kind == "patch":
            mask = "&".join(f"updateMask.fieldPaths={f}" for f in rng.sample(["n", "s", "b"], rng.randint(0, 2)))
            yield caller, "PATCH", f"/{name}?{mask}", {"fields": fields(rng)}, [name]
        elif kind == "delete":
            yield caller, "DELETE", f"/{name}", None, [name]
        else:
            new = rng.choice(["new", "a"])
            yield caller, "POST", f"/{collection}?documentId={new}", {"fields": fields(rng)}, [f"{collection}/{new}"]


def damaged(rng, source):
    """A rules file with one random change, which is usually a mistake."""
    at = rng.randrange(len(source))
    end = min(len(source), at + rng.randint(1, 6))
    return rng.choice([
        lambda: source[:at] + source[end:],
        lambda: source[:at] + rng.choice(["(", ")", "}", ";", "'", " && ", "!", "/", "0", ".", ",", "$", "$(", "\\"]) + source[at:],
        lambda: source[:at] + source[at:end] * 2 + source[end:],
        lambda: source[:at],
    ])()
