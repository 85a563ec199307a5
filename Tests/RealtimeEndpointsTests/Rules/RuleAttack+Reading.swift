// Attacks that try to read: paths, parameters, conditions, queries, settings, and listens that lose their permission.

import RealtimeModel

extension RuleAttack {
  /// The classes of attacks.
  static let groups = Set(all.map(\.group)).sorted()

  /// All attacks.
  static let all = paths + parameters + overrides + conditions + queries + settings + lostAccess + writing

  private static let paths: [RuleAttack] =
    [
      "/secret.json?NS", "/secret/a.json?NS", "/secret%2Fa.json?NS", "/secret/%61.json?NS",
      "/%73ecret/a.json?NS",
      "//secret//a.json?NS", "/open/../secret/a.json?NS", "/open/%2E%2E/secret/a.json?NS",
      "/open/..%2Fsecret.json?NS", "/secret/a/.priority.json?NS", "/secret/a/.value.json?NS",
      "/secret/.json?NS",
      "/secret/a.json/?NS", "/secret/a%00.json?NS", "/secret%00/a.json?NS", "/users/$uid.json?NS",
      "/users/%24uid/name.json?NS", "/users/u2.json?NS", "/users/U1/../u2.json?NS", "/e%CC%81.json?NS",
      "/.json?NS", "/users.json?NS", "/rooms.json?NS", "/open.json#/secret.json?NS", "/%C0%AFsecret.json?NS",
      "/secret;x=1/a.json?NS", "/rooms/r1.json?NS", "/rooms/r1%2Fu2.json?NS", "/rooms/r1/t.json?NS",
      "http://localhost/secret/a.json?NS", "/\\secret/a.json?NS", "/secret/a.json%3F?NS",
    ].map { RuleAttack("paths", "GET \($0)", .rest("GET", $0)) }
    + ["HEAD", "OPTIONS", "POST", "TRACE"].map {
      RuleAttack(
        "paths", "\($0) of a secret", .rest($0, "/secret/a.json?NS", nil, ["X-HTTP-Method-Override: GET"]))
    }
    + [
      #"{"p":"/secret","h":""}"#, #"{"p":"secret/a","h":""}"#, #"{"p":"/open/../secret","h":""}"#,
      #"{"p":"/e\u0301","h":""}"#, #"{"p":"/","h":""}"#, #"{"p":"","h":""}"#, #"{"p":"/.info","h":""}"#,
      #"{"p":"/.settings/rules","h":""}"#, #"{"p":"/secret/a/.priority","h":""}"#,
      #"{"p":"//secret/","h":""}"#,
      #"{"p":"/open","p":"/secret","h":""}"#, #"{"p":"/secret\u0000","h":""}"#,
    ].map { RuleAttack("paths", "listen \($0)", .send("q", $0)) }
    + [
      RuleAttack("paths", "socket get of a secret", .send("g", #"{"p":"/secret","q":{}}"#)),
      RuleAttack("paths", "event stream of a secret", .stream("/secret.json?NS")),
      RuleAttack("paths", "event stream of the root", user: "", .stream("/.json?NS")),
    ]

  private static let parameters: [RuleAttack] = [
    "print=pretty", "print=silent", "format=export", "callback=steal", "download=x", "timeout=1ms",
    "shallow=true",
    "shallow=true&limitToFirst=1", "orderBy=%22$key%22", "orderBy=%22$priority%22&limitToLast=1",
    "disableTriggers=true",
    "ns=other", "writeSizeLimit=unlimited", "x-http-method-override=GET",
    "print=pretty&format=export&callback=a.b",
  ].map { RuleAttack("parameters", $0, .rest("GET", "/secret.json?NS&\($0)")) }

  private static let overrides: [RuleAttack] = [
    RuleAttack(
      "overrides", "a user acts as another",
      .rest("GET", #"/users/u2.json?NS&auth_variable_override=%7B%22uid%22:%22u2%22%7D"#)),
    RuleAttack(
      "overrides", "nobody acts as a user", user: "",
      .rest("GET", #"/users/u2.json?NS&auth_variable_override=%7B%22uid%22:%22u2%22%7D"#)),
    RuleAttack(
      "overrides", "an administrator without rights",
      .rest("GET", "/secret.json?NS&auth=owner&auth_variable_override=null")),
    RuleAttack(
      "overrides", "an administrator as a user",
      .rest("GET", #"/secret.json?NS&auth=owner&auth_variable_override=%7B%22uid%22:%22u1%22%7D"#)),
    RuleAttack(
      "overrides", "an administrator as a user replaces rules",
      .rest(
        "PUT", #"/.settings/rules.json?NS&auth=owner&auth_variable_override=%7B%7D"#,
        #"{"rules":{".read":true}}"#), .rest("GET", "/secret.json?NS")),
    RuleAttack(
      "overrides", "an override that is not an object",
      .rest("GET", "/secret.json?NS&auth=owner&auth_variable_override=true")),
    RuleAttack(
      "overrides", "an override that is not JSON",
      .rest("GET", "/secret.json?NS&auth=owner&auth_variable_override=")),
    RuleAttack(
      "overrides", "two overrides",
      .rest(
        "GET",
        #"/users/u2.json?NS&auth=owner&auth_variable_override=null&auth_variable_override=%7B%22uid%22:%22u1%22%7D"#
      )),
    RuleAttack(
      "overrides", "an event stream as nobody",
      .stream("/secret.json?NS&auth=owner&auth_variable_override=null")),
    RuleAttack(
      "overrides", "a socket of a user with authvar",
      .send("auth", #"{"cred":"x.y.z","authvar":{"uid":"u2"}}"#), .send("g", #"{"p":"/users/u2","q":{}}"#)),
    RuleAttack(
      "overrides", "a socket of an administrator as nobody",
      .send("gauth", #"{"cred":"owner","authvar":null}"#), .send("g", #"{"p":"/secret","q":{}}"#)),
    RuleAttack(
      "overrides", "a socket with a false authvar",
      .send("gauth", #"{"cred":"owner","authvar":7}"#), .send("g", #"{"p":"/secret","q":{}}"#)),
    RuleAttack(
      "overrides", "a socket with two values of authvar",
      .send("gauth", #"{"cred":"owner","authvar":{"uid":"u2"},"authvar":{"uid":"u1"}}"#),
      .send("g", #"{"p":"/users/u2","q":{}}"#)),
    RuleAttack(
      "overrides", "a credential that fails keeps no rights",
      .send("gauth", #"{"cred":"owner"}"#), .send("auth", #"{"cred":"wrong"}"#),
      .send("g", #"{"p":"/secret","q":{}}"#)),
  ]

  private static let conditions: [RuleAttack] =
    ["RIGHT", "wrong", "null_etag", "\"RIGHT\""].flatMap { tag in
      [
        RuleAttack("conditions", "PUT if \(tag)", .rest("PUT", "/inbox.json?NS", "1", ["If-Match: \(tag)"])),
        RuleAttack(
          "conditions", "DELETE if \(tag)", .rest("DELETE", "/inbox.json?NS", nil, ["If-Match: \(tag)"])),
        RuleAttack(
          "conditions", "GET unless \(tag)", .rest("GET", "/secret/a.json?NS", nil, ["If-None-Match: \(tag)"])
        ),
      ]
    } + [
      RuleAttack(
        "conditions", "an ETag of a secret", .rest("GET", "/secret/a.json?NS", nil, ["X-Firebase-ETag: true"])
      ),
      RuleAttack(
        "conditions", "an absent child", .rest("PUT", "/inbox/m2.json?NS", "1", ["If-Match: null_etag"])),
      RuleAttack(
        "conditions", "PATCH with a tag", .rest("PATCH", "/inbox.json?NS", #"{"a":1}"#, ["If-Match: RIGHT"])),
      RuleAttack(
        "conditions", "two tags", .rest("PUT", "/inbox.json?NS", "1", ["If-Match: RIGHT", "If-Match: wrong"])),
      RuleAttack(
        "conditions", "a silent condition",
        .rest("PUT", "/inbox.json?NS&print=silent", "1", ["If-Match: RIGHT"])),
      RuleAttack(
        "conditions", "the number of values by the size of a condition that fails", secrets: ["maximum size"],
        .rest(
          "PUT", "/inbox.json?NS&writeSizeLimit=tiny", "[\(String(repeating: "1,", count: 99_999))1]",
          ["If-Match: wrong"])),
      RuleAttack(
        "conditions", "a transaction with the right hash",
        .send(
          "p", #"{"p":"/inbox","d":1,"h":"\#(Node.object([("m1", .leaf(.string("topsecret4")))]).hash)"}"#)),
      RuleAttack(
        "conditions", "a transaction with a wrong hash", .send("p", #"{"p":"/inbox","d":1,"h":"wrong"}"#)),
      RuleAttack(
        "conditions", "a transaction that expects nothing", .send("p", #"{"p":"/inbox","d":1,"h":""}"#)),
      RuleAttack(
        "conditions", "a transaction at an absent child", .send("p", #"{"p":"/inbox/m9","d":1,"h":""}"#)),
      RuleAttack(
        "conditions", "a transaction at a secret", .send("p", #"{"p":"/secret/a","d":1,"h":"wrong"}"#)),
      RuleAttack("conditions", "a listen with a hash", .send("q", #"{"p":"/inbox","h":"wrong"}"#)),
      RuleAttack(
        "conditions", "a listen with compound hashes",
        .send("q", #"{"p":"/secret","h":"x","ch":{"hs":["a","b"],"ps":["a"]}}"#)),
    ]

  private static let queries: [RuleAttack] =
    [
      "", "&orderBy=%22owner%22", "&orderBy=%22owner%22&equalTo=%22u2%22&limitToFirst=5",
      "&orderBy=%22owner%22&startAt=%22u1%22&endAt=%22u2%22&limitToFirst=5",
      "&orderBy=%22owner%22&equalTo=%22u1%22", "&orderBy=%22owner%22&equalTo=%22u1%22&limitToFirst=11",
      "&orderBy=%22owner%22&equalTo=%22u1%22&limitToLast=5",
      "&orderBy=%22$key%22&equalTo=%22u1%22&limitToFirst=5",
      "&orderBy=%22v%22&equalTo=%22u1%22&limitToFirst=5",
      "&orderBy=%22owner%22&startAfter=%22u1%22&limitToFirst=5",
      "&orderBy=%22owner%22&equalTo=%22u1%22&equalTo=%22u2%22&limitToFirst=5",
      "&orderBy=%22owner%22&equalTo=%22u2%22&equalTo=%22u1%22&limitToFirst=5",
      "&orderBy=%22owner%22&orderBy=%22v%22&equalTo=%22u1%22&limitToFirst=5",
      "&orderBy=%22owner%22&equalTo=%22u1%22&limitToFirst=5&limitToFirst=50",
      "&shallow=true&equalTo=%22u1%22",
      "&orderBy=%22owner%22&endBefore=%22u3%22&limitToFirst=5",
      "&orderBy=%22owner%22&equalTo=null&limitToFirst=5",
      "&orderBy=%22owner/%22&equalTo=%22u2%22&limitToFirst=5",
    ].map { RuleAttack("queries", "GET \($0)", secrets: ["o2"], .rest("GET", "/list.json?NS\($0)")) }
    + [
      #""q":{"i":"owner","sp":"u1","ep":"u2","l":5,"vf":"l"},"t":1"#,
      #""q":{"i":"owner","sp":"u1","ep":"u1"},"t":1"#,
      #""q":{"i":"owner","sp":"u1","ep":"u1","l":5,"vf":"r"},"t":1"#,
      #""q":{"i":"owner","sp":"u1","sp":"u2","ep":"u2","l":5,"vf":"l"},"t":1"#,
      #""q":{"i":"owner","sp":"u1","sn":"[MIN_NAME]","ep":"u1","en":"[MAX_NAME]","l":5,"vf":"l","sin":false},"t":1"#,
      #""q":{"i":"owner","sp":"u1","sin":false,"ep":"u2","l":5,"vf":"l"},"t":1"#,
      #""q":{"i":"owner","sp":"u1","ep":"u1","l":5,"vf":"l"}"#, #""q":{},"t":1"#, #""q":null,"t":1"#,
      #""t":1"#,
      #""q":{"i":".key","sp":"o2","ep":"o2","l":1,"vf":"l"},"t":1"#,
    ].map {
      RuleAttack("queries", "listen \($0)", secrets: ["o2"], .send("q", #"{"p":"/list","h":"",\#($0)}"#))
    }
    + [
      RuleAttack(
        "queries", "a value that leaves a permitted query", secrets: ["topsecret9", "o2"],
        .send("q", #"{"p":"/list","h":"","q":{"i":"owner","sp":"u1","ep":"u1","l":5,"vf":"l"},"t":1}"#),
        .owner("list/o2/v", #""topsecret9""#)),
      RuleAttack(
        "queries", "a default listen after a permitted query",
        .send("q", #"{"p":"/list","h":"","q":{"i":"owner","sp":"u1","ep":"u1","l":5,"vf":"l"},"t":1}"#),
        .send("q", #"{"p":"/list","h":""}"#), .owner("list/o2/v", #""topsecret9""#)),
      RuleAttack(
        "queries", "another query with the tag of a permitted one",
        .send("q", #"{"p":"/list","h":"","q":{"i":"owner","sp":"u1","ep":"u1","l":5,"vf":"l"},"t":1}"#),
        .send("q", #"{"p":"/list","h":"","q":{"i":"owner","sp":"u2","ep":"u2","l":5,"vf":"l"},"t":1}"#),
        .owner("list/o2/v", #""topsecret9""#)),
    ]

  private static let settings: [RuleAttack] = [
    ("GET", "/.settings/rules.json?NS", nil), ("GET", "/.settings/rules.json?NS&format=strict", nil),
    ("GET", "/.settings%2Frules.json?NS", nil), ("GET", "/.settings/rulesets.json?NS", nil),
    ("GET", "/.settings/ruleset_labels.json?NS", nil), ("GET", "/.settings/functionTriggers.json?NS", nil),
    ("GET", "/.settings/.json?NS", nil), ("GET", "/.Settings/rules.json?NS", nil),
    ("GET", "/.inspect/databases.json?NS", nil), ("GET", "/.inspect/coverage.json?NS", nil),
    ("GET", "/namespaces/topsecret-0/rulesets?NS", nil),
    ("GET", "/namespaces/topsecret-0/ruleset_labels?NS", nil),
    ("PUT", "/.settings/rules.json?NS", #"{"rules":{".read":true,".write":true}}"#),
    ("PUT", "/.settings/rules.json?NS&dryRun=true", #"{"rules":{".read":true}}"#),
    ("POST", "/.settings/rules.json?NS&x-http-method-override=PUT", #"{"rules":{".read":true}}"#),
    ("POST", "/.settings/rulesets.json?NS", #"{"rules":{".read":true}}"#),
    ("PUT", "/.settings/ruleset_labels.json?NS", #"{"stable":"x"}"#),
    ("PUT", "/.settings/defaultWriteSizeLimit.json?NS", #""small""#),
    ("DELETE", "/.settings/rules.json?NS", nil), ("PUT", "/.info/connected.json?NS", "true"),
    ("GET", "/.info.json?NS", nil), ("GET", "/.settings/../secret.json?NS", nil),
  ].map { method, target, body in
    RuleAttack(
      "settings", "\(method) \(target)", .rest(method, target, body), .rest("GET", "/secret.json?NS"))
  }

  private static let lostAccess: [RuleAttack] = {
    let closed = #"{"rules":{}}"#
    let listen = Step.send("q", #"{"p":"/users/u1","h":""}"#)
    let secret = Step.owner("users/u1/name", #""topsecret8""#)
    let member = Step.owner("members/r1/u1", "true")
    let room = Step.owner("rooms/r1", #"{"t":"hello"}"#)
    let removal = Step.owner("members/r1/u1", "null")
    let roomSecret = Step.owner("rooms/r1/t", #""topsecret8""#)
    return [
      RuleAttack("lost access", "a listen under new rules", listen, .rules(closed), secret),
      RuleAttack(
        "lost access", "a stream under new rules", .stream("/users/u1.json?NS"), .rules(closed), secret),
      RuleAttack("lost access", "a listen after unauth", listen, .send("unauth", "{}"), secret),
      RuleAttack(
        "lost access", "a listen after a failed credential", listen, .send("auth", #"{"cred":"x"}"#), secret),
      RuleAttack(
        "lost access", "a listen of a removed member", room, member,
        .send("q", #"{"p":"/rooms/r1","h":""}"#), removal, roomSecret),
      RuleAttack(
        "lost access", "a stream of a removed member", room, member, .stream("/rooms/r1.json?NS"),
        removal, roomSecret),
      RuleAttack(
        "lost access", "a deep listen of a removed member", room, member,
        .send("q", #"{"p":"/rooms/r1/t","h":""}"#), .owner("members", "null"), roomSecret),
      RuleAttack(
        "lost access", "a query of a removed member", room, member,
        .send("q", #"{"p":"/rooms/r1","h":"","q":{"i":".key","l":1,"vf":"l"},"t":1}"#), removal, roomSecret),
      RuleAttack(
        "lost access", "membership and value removed as one write", room, member,
        .send("q", #"{"p":"/rooms/r1","h":""}"#),
        .owner("", #"{"rooms":{"r1":{"t":"topsecret8"}},"members":{"r1":{"u2":true}}}"#)),
      RuleAttack(
        "lost access", "a listen that is opened again after its end", room, member,
        .send("q", #"{"p":"/rooms/r1","h":""}"#), removal, .send("q", #"{"p":"/rooms/r1","h":""}"#),
        roomSecret),
    ]
  }()
}
