// Attacks that try to write: cascades, multi-path updates, priorities, server values, numbers, texts, and onDisconnect.

import JSON

extension RuleAttack {
  static let writing =
    cascades + updates + priorities + serverValues + numbers + texts + deletions + disconnects

  /// The same write over REST and, if the value is JSON, over a WebSocket.
  private static func put(_ group: String, _ path: String, _ value: String) -> [RuleAttack] {
    let request = RuleAttack(group, "PUT /\(path) \(value)", .rest("PUT", "/\(path).json?NS", value))
    guard (try? JSONValue(json: value)) != nil else { return [request] }
    return [
      request,
      RuleAttack(group, "socket put /\(path) \(value)", .send("p", #"{"p":"/\#(path)","d":\#(value)}"#)),
    ]
  }

  /// The same update over REST and over a WebSocket.
  private static func update(_ group: String, _ path: String, _ value: String) -> [RuleAttack] {
    [
      RuleAttack(group, "PATCH /\(path) \(value)", .rest("PATCH", "/\(path).json?NS", value)),
      RuleAttack(group, "socket merge /\(path) \(value)", .send("m", #"{"p":"/\#(path)","d":\#(value)}"#)),
    ]
  }

  private static let cascades: [RuleAttack] =
    put("cascades", "users", #"{"u1":{"name":"bob"}}"#) + put("cascades", "", #"{"open":1}"#)
    + put("cascades", "users/u1/role", #""admin""#)
    + put("cascades", "users/u1", #"{"name":"bob","role":"admin"}"#)
    + put("cascades", "users/u1/extra", "1") + put("cascades", "users/u1/name/first", #""bob""#)
    + put("cascades", "users/u1", #"{"role":"user"}"#) + put("cascades", "users/u1", #""text""#)
    + put("cascades", "users/u2/name", #""bob""#) + put("cascades", "admins/u1", "true")
    + put("cascades", "members/r1/u1", "true") + put("cascades", "secret/new", "1")
    + put("cascades", "users/u1/role/x", #""user""#) + put("cascades", "fresh", "1")
    + [
      RuleAttack("cascades", "POST of a child", .rest("POST", "/secret.json?NS", "1")),
      RuleAttack("cascades", "POST into a user", .rest("POST", "/users/u1.json?NS", "1")),
      RuleAttack(
        "cascades", "PUT by an override of the method",
        .rest("POST", "/admins/u1.json?NS", "true", ["X-HTTP-Method-Override: PUT"])),
      RuleAttack(
        "cascades", "DELETE by a parameter",
        .rest("POST", "/secret.json?NS&x-http-method-override=DELETE", "")),
      RuleAttack(
        "cascades", "an upload to the root",
        .rest(
          "POST", "/.upload?NS", "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n1\r\n--b--\r\n",
          ["Content-Type: multipart/form-data; boundary=b"])),
      RuleAttack(
        "cascades", "an upload to a secret",
        .rest(
          "POST", "/secret/.upload?NS",
          "--b\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\n1\r\n--b--\r\n",
          ["Content-Type: multipart/form-data; boundary=b"])),
      RuleAttack(
        "cascades", "an import without a size limit",
        .rest("PUT", "/secret.json?NS&writeSizeLimit=unlimited&print=silent&disableTriggers=true", "1")),
    ]

  private static let updates: [RuleAttack] =
    update("updates", "", #"{"members/r1/u1":true,"rooms/r1/t":"x"}"#)
    + update("updates", "", #"{"admins/u1":true,"members/r1/u1":true,"rooms/r1/t":"x"}"#)
    + update("updates", "", #"{"open/x":2,"secret/a":2}"#)
    + update("updates", "", #"{"open":{"x":2},"open/y":{"z":1},"secret":1}"#)
    + update("updates", "", #"{"users/u1":{"name":"bob"},"users/u1/role":"admin"}"#)
    + update("updates", "users/u1", #"{"role":"admin"}"#)
    + update("updates", "users/u1", #"{"age":31,"role":"admin"}"#)
    + update("updates", "users/u1", #"{"name":null,"age":31}"#)
    + update("updates", "users/u1", #"{"../u2/name":"bob"}"#)
    + update("updates", "open", #"{"../secret/a":1}"#)
    + update("updates", "", #"{"users//u1//role":"admin"}"#)
    + update("updates", "", #"{"/users/u1/role/":"admin"}"#)
    + update("updates", "", #"{"users/u1/role/.value":"admin"}"#) + update("updates", "", #"{"":{"open":1}}"#)
    + update("updates", "", #"{"/":{"open":1}}"#)
    + update("updates", "", #"{"users/u1/name":"bob","/users/u1/name":"toolong"}"#)
    + update("updates", "", #"{"frozen/a":null,"frozen/b":3}"#)
    + update("updates", "", #"{"count":6,"count/x":null,"secret/a":null}"#)
    + [RuleAttack("updates", "PATCH null deletes", .rest("PATCH", "/secret.json?NS", "null"))]

  private static let priorities: [RuleAttack] =
    put("priorities", "plain", #"{".value":1,".priority":2}"#) + put("priorities", "plain/.priority", "3")
    + update("priorities", "plain", #"{".priority":3}"#) + update("priorities", "", #"{"plain/.priority":3}"#)
    + put("priorities", "plain/.priority", #"{".sv":"timestamp"}"#)
    + put("priorities", "plain", #"{".value":1,".priority":{".sv":{"increment":1}}}"#)
    + put("priorities", "secret/.priority", "1") + put("priorities", ".priority", "1")
    + put("priorities", "number", #"{".value":"x"}"#) + put("priorities", "number", #"{".value":500}"#)
    + put("priorities", "number", #"{".value":{"a":1}}"#)
    + put("priorities", "short", #"{".value":"toolong"}"#)
    + put("priorities", "users/u2/.priority", "1") + put("priorities", "strict/ABC/.priority", "1")
    + put("priorities", "plain", #"{"x":1,".priority":"p"}"#)

  private static let serverValues: [RuleAttack] =
    put("server values", "count", #"{".sv":{"increment":2}}"#)
    + put("server values", "count", #"{".sv":{"increment":-1}}"#)
    + put("server values", "count", #"{".sv":{"increment":0}}"#)
    + put("server values", "count", #"{".sv":{"increment":1e308}}"#)
    + put("server values", "count", #"{".sv":"timestamp"}"#)
    + update("server values", "", #"{"count":{".sv":{"increment":5}}}"#)
    + put("server values", "number", #"{".sv":{"increment":95}}"#)
    + put("server values", "number", #"{".sv":{"increment":"95"}}"#)
    + put("server values", "number", #"{".sv":{"increment":1,"decrement":2},"x":1}"#)
    + put("server values", "users/u1/age", #"{".sv":{"increment":200}}"#)
    + put("server values", "users/u1/role", #"{".sv":"timestamp"}"#)
    + put("server values", "users/u1", #"{"name":"bob","role":{".sv":"timestamp"}}"#)
    + put("server values", "post/p2", #"{"at":1}"#)
    + put("server values", "post/p1", #"{"at":{".sv":"timestamp"}}"#)
    + put("server values", "post/p2", #"{"at":{".sv":"time"}}"#)
    + put("server values", "post/p2", #"{"at":{".sv":{"increment":1900000000000}}}"#)
    + put("server values", "secret/a", #"{".sv":{"increment":1}}"#)
    + [
      RuleAttack(
        "server values", "a result that overflows at a secret",
        .rest("PUT", "/secret/n.json?NS", #"{".sv":{"increment":1e999}}"#)),
      RuleAttack(
        "server values", "an increment on disconnect",
        .send("o", #"{"p":"/count","d":{".sv":{"increment":2}}}"#),
        .close),
    ]

  private static let numbers: [RuleAttack] = [
    "1e2", "99.999999999999999999", "1E400", "100", "9007199254740993", "18446744073709551616", "0x10",
    "\"5\"", "[5]",
    #"{"0":5}"#, "true", "1e309", "NaN", "5 6", "100.0",
  ].flatMap { put("numbers", "number", $0) }

  private static let texts: [RuleAttack] =
    [
      #""abcde""#, #""😀😀😀""#, #""\ud83d\ude00\ud83d\ude00a""#, #""e\u0301e\u0301x""#, #""\r\n\r\n\n""#,
      #"["a"]"#, "4",
    ]
    .flatMap { put("texts", "short", $0) }
    + ["ABC", "a1", "é", "e\u{301}", "ａ", "ab\u{200B}", "abc ", "\u{212A}", "ſ", "😀"]
    .map { RuleAttack("texts", "the key \($0)", .send("p", #"{"p":"/strict/\#($0)","d":"x"}"#)) }
    + [#""\u212a""#, #""ſ""#, #""abc\n""#, #""a\u0301""#, #""""#, #""ａ""#].flatMap {
      put("texts", "letters", $0)
    }
    + [
      RuleAttack(
        "texts", "a long text",
        .rest("PUT", "/short.json?NS", "\"\(String(repeating: "x", count: 100_000))\"")),
      RuleAttack(
        "texts", "a long key",
        .rest("PUT", "/strict/\(String(repeating: "a", count: 800)).json?NS", #""x""#)),
      RuleAttack("texts", "a key with a line break", .send("p", #"{"p":"/strict/abc\n","d":"x"}"#)),
      RuleAttack("texts", "a value below a key", .send("p", #"{"p":"/strict/abc/d","d":"x"}"#)),
      RuleAttack(
        "texts", "half a surrogate pair", .rest("PUT", "/short.json?NS", #""\ud83d\ud83d""#)),
    ]

  private static let deletions: [RuleAttack] =
    put("deletions", "frozen", "null") + put("deletions", "frozen", "{}") + put("deletions", "frozen", "[]")
    + put("deletions", "frozen", #"{"a":null}"#) + put("deletions", "frozen/a", "null")
    + put("deletions", "frozen", #"{"a":{}}"#) + put("deletions", "frozen", #"{"b":2}"#)
    + put("deletions", "users/u1/name", "null") + update("deletions", "frozen", #"{"a":null}"#)
    + put("deletions", "users/u1/name", "{}") + put("deletions", "post/p1", "null")
    + put("deletions", "", "null")
    + [
      RuleAttack("deletions", "DELETE of a frozen value", .rest("DELETE", "/frozen.json?NS")),
      RuleAttack("deletions", "DELETE of a secret", .rest("DELETE", "/secret.json?NS")),
    ]

  private static let disconnects: [RuleAttack] = [
    RuleAttack("onDisconnect", "a secret", .send("o", #"{"p":"/secret/a","d":1}"#), .close),
    RuleAttack("onDisconnect", "a role", .send("o", #"{"p":"/users/u1/role","d":"admin"}"#), .close),
    RuleAttack(
      "onDisconnect", "an update", .send("om", #"{"p":"/","d":{"open/x":2,"admins/u1":true}}"#), .close),
    RuleAttack("onDisconnect", "a removal", .send("o", #"{"p":"/frozen","d":null}"#), .close),
    RuleAttack(
      "onDisconnect", "rules that close meanwhile", .send("o", #"{"p":"/open/x","d":2}"#),
      .rules(#"{"rules":{}}"#), .close),
    RuleAttack(
      "onDisconnect", "a membership that ends meanwhile", .owner("members/r1/u1", "true"),
      .send("o", #"{"p":"/rooms/r1/t","d":"x"}"#), .owner("members/r1/u1", "null"), .close),
    RuleAttack(
      "onDisconnect", "a write after unauth", .send("unauth", "{}"),
      .send("o", #"{"p":"/users/u1/age","d":31}"#), .close),
    RuleAttack(
      "onDisconnect", "a write that cancels another at a secret", .send("oc", #"{"p":"/secret","d":null}"#),
      .close),
    RuleAttack(
      "onDisconnect", "a later value of a priority", .send("o", #"{"p":"/plain/.priority","d":1}"#), .close),
  ]
}
