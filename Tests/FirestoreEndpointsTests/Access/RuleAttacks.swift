// Attacks on a database with rules, grouped by kind. The attacker is signed in as the user `eve`, or not signed in.

@testable import EndpointFixture

/// One request of an attacker.
struct RuleAttack: CustomStringConvertible {
  /// The kind of the attack, for failure messages.
  var kind: String
  var method: String
  var target: String
  var body: String?
  /// Whether the attacker is signed in as `eve`.
  var isSignedIn = true

  var description: String {
    "\(kind): \(method) \(target) \(body ?? "") \(isSignedIn ? "as eve" : "as nobody")"
  }

  static let root = "/v1/\(FirestoreTestServer.documents)"
  private static let documents = FirestoreTestServer.documents

  /// The rules under attack: conditions that are common in practice.
  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function me() { return request.auth.uid; }
        match /users/{uid} {
          allow get: if me() == uid;
          allow create: if me() == uid && request.resource.data.role == 'user';
          allow update: if me() == uid
            && request.resource.data.diff(resource.data).affectedKeys().hasOnly(['name']);
        }
        match /posts/{id} {
          allow get: if resource.data.public == true || resource.data.owner == me();
          allow list: if resource.data.public == true;
          allow create: if request.resource.data.owner == me() && request.resource.data.at == request.time;
          allow update: if resource.data.owner == me()
            && request.resource.data.owner == resource.data.owner && request.resource.data.likes == resource.data.likes;
          allow delete: if resource.data.owner == me();
          match /notes/{note} {
            allow read: if get(/databases/$(database)/documents/posts/$(id)).data.owner == me();
          }
        }
        match /teams/{team} {
          allow read: if exists(/databases/$(database)/documents/members/$(team + '_' + me()));
          allow update: if getAfter(/databases/$(database)/documents/members/$(team + '_' + me())).data.role == 'owner';
        }
        match /members/{id} {
          allow create: if request.resource.data.role == 'guest' && request.resource.data.uid == me()
            && id == request.resource.data.team + '_' + me();
          allow update: if false;
          allow delete: if resource.data.uid == me();
        }
        match /inbox/{id} {
          allow get: if resource.data.to == me();
          allow list: if resource.data.to == me() && request.query.limit <= 10;
        }
        match /counters/{id} {
          allow get: if true;
          allow update: if request.resource.data.n == resource.data.n + 1
            && request.resource.data.keys().hasOnly(['n']);
        }
        match /locked/{path=**} { allow read, write: if request.auth.token.admin == true; }
      }
    }
    """

  /// Every attack. No attack may succeed.
  static let all: [RuleAttack] =
    paths + masks + foreignWrites + lookups + lists + groups + administration + consistency + transactions

  /// Requests that the rules allow. Their success shows that the attacks do not fail only because the server denies every
  /// request.
  static let permitted: [RuleAttack] = [
    RuleAttack(kind: "permitted", method: "GET", target: "\(root)/users/eve"),
    RuleAttack(kind: "permitted", method: "GET", target: "\(root)/posts/open", isSignedIn: false),
    RuleAttack(
      kind: "permitted", method: "PATCH", target: "\(root)/users/eve?updateMask.fieldPaths=name",
      body: #"{"fields":{"name":{"stringValue":"Eve"}}}"#),
    RuleAttack(
      kind: "permitted", method: "POST", target: "\(root):runQuery",
      body: query("posts", equal("public", #"{"booleanValue":true}"#))),
    RuleAttack(
      kind: "permitted", method: "POST", target: "\(root):runQuery",
      body: query("inbox", equal("to", #"{"stringValue":"eve"}"#), #""limit":10"#)),
    RuleAttack(
      kind: "permitted", method: "POST", target: "\(root):runAggregationQuery",
      body: count(query("posts", equal("public", #"{"booleanValue":true}"#)))),
    RuleAttack(
      kind: "permitted", method: "POST", target: "\(root):commit",
      body: commit([set("counters/c", #""n":{"integerValue":"2"}"#)])),
  ]

  // MARK: Parts of requests

  static func equal(_ field: String, _ value: String, _ op: String = "EQUAL") -> String {
    #"{"fieldFilter":{"field":{"fieldPath":"\#(field)"},"op":"\#(op)","value":\#(value)}}"#
  }

  static func query(_ collection: String, _ filter: String? = nil, _ more: String? = nil) -> String {
    let filter = filter.map { #","where":\#($0)"# } ?? ""
    let more = more.map { "," + $0 } ?? ""
    return #"{"structuredQuery":{"from":[{"collectionId":"\#(collection)"}]\#(filter)\#(more)}}"#
  }

  static func count(_ query: String) -> String {
    #"{"structuredAggregationQuery":{"#
      + query.dropFirst().dropLast() + #","aggregations":[{"alias":"n","count":{}}]}}"#
  }

  static func set(_ path: String, _ fields: String, _ more: String = "") -> String {
    #"{"update":{"name":"\#(documents)/\#(path)","fields":{\#(fields)}}\#(more)}"#
  }

  static func commit(_ writes: [String]) -> String { #"{"writes":[\#(writes.joined(separator: ","))]}"# }

  // MARK: Kinds

  /// Other spellings of a path, other databases, and paths below a document.
  private static let paths: [RuleAttack] = [
    "/users/alice", "/users/%61lice", "/users%2Falice", "/users/alice%2F", "/users//alice", "/users/./alice",
    "/users/../users/alice", "/posts/../users/alice", "/users/eve/../alice", "/users/alice/",
    "/users/alice%00",
    "/users/%2561lice", "/users/alice?mask.fieldPaths=role", "/users/alice?mask.fieldPaths=__name__",
    "/posts/private", "/posts/private/notes/n", "/locked/x", "/locked/x/deep/y", "/locked", "/users", "/",
    "/teams/t", "/members/t_alice", "/inbox/m", "/posts/private/notes", "/users/alice/users/eve",
  ].flatMap { path in
    [true, false].map {
      RuleAttack(kind: "path", method: "GET", target: root + path, isSignedIn: $0)
    }
  }

  /// Changes of fields that the rules protect, hidden in masks and transforms.
  private static let masks: [RuleAttack] = {
    let role = #""role":{"stringValue":"admin"}"#
    let bodies: [(String, String)] = [
      ("updateMask.fieldPaths=role", role), ("updateMask.fieldPaths=%60role%60", role),
      ("updateMask.fieldPaths=name&updateMask.fieldPaths=role", role), ("updateMask.fieldPaths=role", ""),
      ("", role), ("", #""name":{"stringValue":"Eve"}"#),
      ("updateMask.fieldPaths=role.x", #""role":{"mapValue":{"fields":{"x":{"nullValue":null}}}}"#),
      ("updateMask.fieldPaths=extra", #""extra":{"nullValue":null}"#), ("currentDocument.exists=true", role),
    ]
    let patches = bodies.map { query, fields in
      RuleAttack(
        kind: "mask", method: "PATCH", target: "\(root)/users/eve?\(query)", body: #"{"fields":{\#(fields)}}"#
      )
    }
    let transforms = [
      #"{"fieldPath":"role","setToServerValue":"REQUEST_TIME"}"#,
      #"{"fieldPath":"role","increment":{"integerValue":"1"}}"#,
      #"{"fieldPath":"role","appendMissingElements":{"values":[{"stringValue":"admin"}]}}"#,
      #"{"fieldPath":"role","removeAllFromArray":{"values":[]}}"#,
      #"{"fieldPath":"role","maximum":{"integerValue":"9"}}"#,
      #"{"fieldPath":"other","setToServerValue":"REQUEST_TIME"}"#,
    ].flatMap { transform in
      [
        #"{"transform":{"document":"\#(documents)/users/eve","fieldTransforms":[\#(transform)]}}"#,
        set(
          "users/eve", #""name":{"stringValue":"Eve"}"#,
          #","updateMask":{"fieldPaths":["name"]},"updateTransforms":[\#(transform)]"#),
      ]
    }
    let commits = [
      [
        set("users/eve", role),
        set("users/eve", #""name":{"stringValue":"E"},"role":{"stringValue":"admin"}"#),
      ],
      [
        set("users/eve", #""name":{"stringValue":"E"}"#, #","updateMask":{"fieldPaths":["name"]}"#),
        set("users/eve", role, #","updateMask":{"fieldPaths":["role"]}"#),
      ],
      [#"{"delete":"\#(documents)/users/eve"}"#, set("users/eve", role)],
      [set("counters/c", #""n":{"integerValue":"7"}"#)], [set("counters/c", #""n":{"doubleValue":2.5}"#)],
      [set("counters/c", #""n":{"integerValue":"2"},"x":{"nullValue":null}"#)],
      [set("counters/c", #""n":{"integerValue":"2"}"#), set("counters/c", #""n":{"integerValue":"3"}"#)],
      [
        #"{"transform":{"document":"\#(documents)/counters/c","fieldTransforms":[{"fieldPath":"n","increment":{"integerValue":"2"}}]}}"#
      ],
      [set("posts/mine", #""owner":{"stringValue":"alice"},"likes":{"integerValue":"0"}"#)],
      [set("posts/mine", #""owner":{"stringValue":"eve"},"likes":{"integerValue":"99"}"#)],
      [set("posts/new", #""owner":{"stringValue":"eve"},"at":{"timestampValue":"2030-01-01T00:00:00Z"}"#)],
    ]
    return patches
      + (transforms.map { [$0] } + commits).map {
        RuleAttack(kind: "mask", method: "POST", target: "\(root):commit", body: commit($0))
      }
  }()

  /// Writes of documents of other users, with every precondition.
  private static let foreignWrites: [RuleAttack] = [
    "users/alice", "users/absent", "locked/x", "posts/private", "nowhere/x",
  ].flatMap { path -> [RuleAttack] in
    let patch = #"{"fields":{"name":{"stringValue":"E"}}}"#
    var attacks = [
      RuleAttack(kind: "write", method: "PATCH", target: "\(root)/\(path)", body: patch, isSignedIn: false),
      RuleAttack(
        kind: "write", method: "POST", target: "\(root):commit",
        body: commit([#"{"verify":"\#(documents)/\#(path)","currentDocument":{"exists":false}}"#])),
    ]
    for condition in [
      "", "?currentDocument.exists=true", "?currentDocument.exists=false",
      "?currentDocument.updateTime=2001-01-01T00:00:00Z",
    ] {
      attacks.append(
        RuleAttack(kind: "write", method: "PATCH", target: "\(root)/\(path)\(condition)", body: patch))
      attacks.append(RuleAttack(kind: "write", method: "DELETE", target: "\(root)/\(path)\(condition)"))
    }
    return attacks
  }

  /// Commits that also write the documents that their rules look up.
  private static let lookups: [RuleAttack] = {
    let owner = set(
      "members/t_eve",
      #""uid":{"stringValue":"eve"},"team":{"stringValue":"t"},"role":{"stringValue":"owner"}"#)
    let guest = set(
      "members/t_eve",
      #""uid":{"stringValue":"eve"},"team":{"stringValue":"t"},"role":{"stringValue":"guest"}"#)
    let team = set("teams/t", #""text":{"stringValue":"taken"}"#)
    let note = set("posts/private/notes/n", #""text":{"stringValue":"taken"}"#)
    let post = set("posts/private", #""owner":{"stringValue":"eve"}"#)
    return [
      [owner, team], [team, owner], [guest, team], [team, guest], [guest, owner, team], [guest, team, owner],
      [owner], [team], [post, note], [note, post], [post],
      [
        set(
          "members/t_alice",
          #""uid":{"stringValue":"eve"},"team":{"stringValue":"t"},"role":{"stringValue":"guest"}"#)
      ],
      [#"{"delete":"\#(documents)/members/t_alice"}"#], [guest, #"{"delete":"\#(documents)/teams/t"}"#],
    ].map { RuleAttack(kind: "lookup", method: "POST", target: "\(root):commit", body: commit($0)) }
  }()

  /// Queries and counts whose filters do not prove the conditions of the rules.
  private static let lists: [RuleAttack] = {
    let yes = #"{"booleanValue":true}"#
    let no = #"{"booleanValue":false}"#
    let isPublic = equal("public", yes)
    func composite(_ filters: [String], _ op: String) -> String {
      #"{"compositeFilter":{"op":"\#(op)","filters":[\#(filters.joined(separator: ","))]}}"#
    }
    let eve = #"{"stringValue":"eve"}"#
    let alice = #"{"stringValue":"alice"}"#
    let privatePost = #"{"referenceValue":"\#(documents)/posts/private"}"#
    let queries = [
      query("posts"), query("posts", equal("public", no)), query("posts", equal("public", yes, "NOT_EQUAL")),
      query("posts", equal("public", no, "NOT_EQUAL")), query("posts", equal("public", no, "GREATER_THAN")),
      query("posts", equal("public", yes, "GREATER_THAN_OR_EQUAL")),
      query("posts", equal("public", yes, "LESS_THAN_OR_EQUAL")),
      query("posts", equal("public", #"{"arrayValue":{"values":[\#(yes),\#(no)]}}"#, "IN")),
      query("posts", equal("public", #"{"arrayValue":{"values":[\#(no)]}}"#, "NOT_IN")),
      query("posts", #"{"unaryFilter":{"field":{"fieldPath":"public"},"op":"IS_NOT_NULL"}}"#),
      query("posts", composite([isPublic, equal("public", no)], "OR")),
      query("posts", composite([isPublic, equal("owner", eve)], "OR")),
      query("posts", composite([equal("owner", alice), equal("likes", #"{"integerValue":"0"}"#)], "AND")),
      query("posts", equal("owner", eve)), query("posts", equal("__name__", privatePost)),
      query("posts", equal("__name__", privatePost, "GREATER_THAN_OR_EQUAL")),
      query("posts", equal("publi", yes)), query("posts", equal("public.x", yes)),
      query("posts", equal("public", #"{"stringValue":"true"}"#)),
      query("posts", equal("public", #"{"integerValue":"1"}"#)),
      query("posts", nil, #""limit":0"#), query("posts", nil, #""offset":1"#),
      query("posts", nil, #""select":{"fields":[{"fieldPath":"__name__"}]}"#),
      query(
        "posts", nil,
        #""orderBy":[{"field":{"fieldPath":"public"}}],"startAt":{"values":[\#(yes)],"before":true}"#),
      query("inbox", equal("to", eve)), query("inbox", equal("to", eve), #""limit":11"#),
      query("inbox", equal("to", alice), #""limit":1"#), query("inbox", nil, #""limit":1"#),
      query("inbox", equal("to", #"{"arrayValue":{"values":[\#(eve),\#(alice)]}}"#, "IN"), #""limit":1"#),
      query(
        "inbox",
        composite(
          [equal("to", eve, "GREATER_THAN_OR_EQUAL"), equal("to", eve, "LESS_THAN_OR_EQUAL")], "AND"),
        #""limit":1"#),
      query("users"), query("teams"), query("members", equal("uid", eve)), query("locked"),
    ]
    return queries.flatMap {
      [
        RuleAttack(kind: "list", method: "POST", target: "\(root):runQuery", body: $0),
        RuleAttack(kind: "count", method: "POST", target: "\(root):runAggregationQuery", body: count($0)),
      ]
    }
      + [
        "/posts", "/posts?pageSize=1", "/posts?orderBy=public", "/inbox?pageSize=5",
        "/users?mask.fieldPaths=name",
      ].map {
        RuleAttack(kind: "list", method: "GET", target: root + $0)
      }
  }()

  /// Queries over all collections with an id, below several parents.
  private static let groups: [RuleAttack] = ["notes", "users", "posts", "locked", "inbox", ""].flatMap { id in
    ["", "/posts/private", "/locked/x"].flatMap { parent -> [RuleAttack] in
      let selector =
        id.isEmpty ? #"{"allDescendants":true}"# : #"{"collectionId":"\#(id)","allDescendants":true}"#
      let query = #"{"structuredQuery":{"from":[\#(selector)]}}"#
      return [
        RuleAttack(kind: "group", method: "POST", target: "\(root)\(parent):runQuery", body: query),
        RuleAttack(
          kind: "group", method: "POST", target: "\(root)\(parent):runAggregationQuery", body: count(query)),
      ]
    }
  }

  /// Operations that only administrators may use.
  private static let administration: [RuleAttack] =
    [
      (":listCollectionIds", "{}"), ("/posts/private:listCollectionIds", "{}"),
      ("/users/eve:listCollectionIds", "{}"),
      (
        ":partitionQuery",
        #"{"structuredQuery":{"from":[{"collectionId":"posts","allDescendants":true}],"orderBy":[{"field":{"fieldPath":"__name__"}}]},"partitionCount":"2"}"#
      ),
      (
        ":batchWrite",
        commit([set("users/eve", #""name":{"stringValue":"E"}"#, #","updateMask":{"fieldPaths":["name"]}"#)])
      ),
      (":batchWrite", commit([set("users/alice", #""name":{"stringValue":"E"}"#)])),
      (":runQuery", #"{"structuredQuery":{"from":[{"collectionId":"posts"}]},"explainOptions":{}}"#),
      (
        ":runQuery",
        #"{"structuredQuery":{"from":[{"collectionId":"posts"}]},"explainOptions":{"analyze":true}}"#
      ),
    ].map { RuleAttack(kind: "administration", method: "POST", target: root + $0.0, body: $0.1) } + [
      RuleAttack(kind: "administration", method: "GET", target: "\(root)/posts?showMissing=true"),
      RuleAttack(kind: "administration", method: "GET", target: "\(root)/nowhere?showMissing=true"),
    ]

  /// Reads at past times, and reads of several documents. `TIME` is a time at which `posts/private` was public.
  private static let consistency: [RuleAttack] = {
    let names = ["open", "private"].map { "\"\(RuleAttack.documents)/posts/\($0)\"" }
    return [
      RuleAttack(kind: "read time", method: "GET", target: "\(root)/posts/private?readTime=TIME"),
      RuleAttack(kind: "read time", method: "GET", target: "\(root)/users/alice?readTime=TIME"),
      RuleAttack(kind: "read time", method: "GET", target: "\(root)/posts?readTime=TIME&pageSize=2"),
      RuleAttack(
        kind: "read time", method: "POST", target: "\(root):runQuery",
        body: #"{"structuredQuery":{"from":[{"collectionId":"posts"}]},"readTime":"TIME"}"#),
      RuleAttack(
        kind: "read time", method: "POST", target: "\(root):batchGet",
        body: #"{"documents":[\#(names[1])],"readTime":"TIME"}"#),
      RuleAttack(
        kind: "batch", method: "POST", target: "\(root):batchGet",
        body: #"{"documents":[\#(names[0]),\#(names[1])]}"#),
      RuleAttack(
        kind: "batch", method: "POST", target: "\(root):batchGet",
        body: #"{"documents":[\#(names[1]),\#(names[0])]}"#),
      RuleAttack(
        kind: "batch", method: "POST", target: "\(root):batchGet",
        body: #"{"documents":[\#(names[1])],"mask":{"fieldPaths":["owner"]}}"#),
      RuleAttack(
        kind: "batch", method: "POST", target: "\(root):batchGet",
        body: #"{"documents":[\#(names[1])],"newTransaction":{"readOnly":{}}}"#),
    ]
  }()

  /// Reads and writes in a transaction of the attacker, whose id replaces `TRANSACTION`.
  private static let transactions: [RuleAttack] = [
    RuleAttack(kind: "transaction", method: "GET", target: "\(root)/users/alice?transaction=TRANSACTION"),
    RuleAttack(
      kind: "transaction", method: "POST", target: "\(root):batchGet",
      body: #"{"documents":["\#(documents)/users/alice"],"transaction":"TRANSACTION"}"#),
    RuleAttack(
      kind: "transaction", method: "POST", target: "\(root):runQuery",
      body: #"{"structuredQuery":{"from":[{"collectionId":"users"}]},"transaction":"TRANSACTION"}"#),
    RuleAttack(
      kind: "transaction", method: "POST", target: "\(root):runQuery",
      body: #"{"structuredQuery":{"from":[{"collectionId":"users"}]},"newTransaction":{"readWrite":{}}}"#),
    RuleAttack(
      kind: "transaction", method: "POST", target: "\(root):commit",
      body: #"{"writes":[{"delete":"\#(documents)/users/alice"}],"transaction":"TRANSACTION"}"#),
    RuleAttack(
      kind: "transaction", method: "POST", target: "\(root):commit",
      body:
        #"{"writes":[\#(set("users/eve", #""role":{"stringValue":"admin"}"#))],"transaction":"TRANSACTION"}"#),
  ]
}
