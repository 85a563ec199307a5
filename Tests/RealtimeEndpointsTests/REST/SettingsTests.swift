// Tests the settings of a database over REST: rules, rulesets, write size limits and function triggers. The label `stable`
// marks the ruleset in force. The label `canary` marks a ruleset that the server only compares with the one in force.

import Access
import JSON
import NIOCore
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

@testable import EndpointFixture
@testable import RealtimeEndpoints

@Suite("Settings of the Realtime Database", .timeLimit(.minutes(10)))
struct SettingsTests {
  private static let owner = ["Authorization: Bearer owner"]
  private static let text = """
    { // kept
      "rules": { "notes": { ".indexOn": "due" }, ".read": "auth != null", ".write": true, }
    }
    """

  private func error(_ answer: RESTAnswer) throws -> String? {
    try JSONValue(json: answer.body)["error"]?.string
  }

  @Test(
    "Rules are returned as written, with comments, or as plain JSON, and survive a restart"
  )
  func rules() async throws {
    try await RealtimeTestServer.run { server in
      let first = try await server.rest("GET", "/.settings/rules.json?ns=demo", headers: Self.owner)
      #expect(first.status == 200)
      #expect(
        first.body == "{\n    \"rules\": {\n        \".read\": true,\n        \".write\": true\n    }\n}")
      let answer = try await server.rest(
        "PUT", "/.settings/rules.json?ns=demo", body: Self.text, headers: Self.owner)
      #expect(answer.status == 200)
      #expect(answer.body == #"{"status":"ok"}"#)
      #expect(
        try await server.rest("GET", "/.settings/rules.json?ns=demo", headers: Self.owner).body == Self.text)
      let strict = try await server.rest(
        "GET", "/.settings/rules.json?ns=demo&format=strict", headers: Self.owner)
      #expect(
        strict.body == #"{"rules":{"notes":{".indexOn":"due"},".read":"auth != null",".write":true}}"#)
      // A second engine on the same store has the rules, like a server after a restart. Other namespaces have
      // no rules.
      let engine = RealtimeEngine(store: server.store, policy: OpenPolicy())
      #expect(try await engine.database("demo").rules()?.text == Self.text)
      #expect(try await engine.database("other").rules() == nil)
      await engine.shutdown()
    }
  }

  @Test("Rules that allow everything are accepted without a warning")
  func openRules() async throws {
    try await RealtimeTestServer.run { server in
      let answer = try await server.rest(
        "PUT", "/.settings/rules.json", body: #"{"rules":{".read":true,".write":true}}"#, headers: Self.owner)
      #expect(answer.status == 200 && answer.body == #"{"status":"ok"}"#)
    }
  }

  @Test("Rules may begin with a byte-order mark")
  func byteOrderMark() throws {
    #expect(try RulesFile(Array(("\u{FEFF}" + Self.text).utf8)).text == Self.text)
    let error = #expect(throws: RulesError.self) { try RulesFile(Array("\u{FEFF}{x".utf8)) }
    #expect(error?.description.hasPrefix("1:2: ") == true, "\(String(describing: error))")
  }

  @Test(
    "Invalid rules are rejected with the positions of their errors; after that and a dry run the old rules hold"
  )
  func badRules() async throws {
    try await RealtimeTestServer.run { server in
      let rules = "/.settings/rules.json"
      #expect(try await server.rest("PUT", rules, body: Self.text, headers: Self.owner).status == 200)
      let bad = "{\n  \"rules\": {\n    \".read\": \"auth !=\",\n    \"a\": 1\n  }\n}"
      for target in [rules, rules + "?dryRun=true"] {
        let answer = try await server.rest("PUT", target, body: bad, headers: Self.owner)
        #expect(answer.status == 400)
        #expect(
          try error(answer)
            == "3:15: Parse error: expected an operand, found the end.\n4:10: Expected an object of rules.\n")
      }
      let dry = try await server.rest(
        "PUT", rules + "?dryRun=true", body: #"{"rules":{}}"#, headers: Self.owner)
      #expect(dry.status == 200)
      #expect(try await server.rest("GET", rules, headers: Self.owner).body == Self.text)
    }
  }

  @Test("Only administrators may read and change settings")
  func access() async throws {
    try await RealtimeTestServer.run { server in
      for target in ["/.settings/rules.json", "/.settings/defaultWriteSizeLimit.json"] {
        let denied = try await server.rest("GET", target)
        #expect(denied.status == 401)
        #expect(try error(denied) == "Permission denied")
        #expect(try await server.rest("PUT", target, body: "\"small\"").status == 401)
        let user = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ1MSJ9."
        #expect(
          try await server.rest("GET", target, headers: ["Authorization: Bearer \(user)"]).status == 401)
      }
      #expect(try await server.engine.namespaces().isEmpty)
    }
    try await RealtimeTestServer.run(policy: LockedPolicy(), authentication: .rejectAll) { server in
      let answer = try await server.rest(
        "PUT", "/.settings/rules.json", body: Self.text, headers: Self.owner)
      #expect(answer.status == 401)
    }
  }

  @Test("Requests for missing or unsupported resources are rejected with the reason")
  func unknown() async throws {
    try await RealtimeTestServer.run { server in
      for (method, target, status, text) in [
        ("PUT", "/.settings/rulesets.json", 405, "changed with POST"),
        ("POST", "/.settings/ruleset_labels.json", 405, "changed with PUT"),
        ("POST", "/namespaces/demo/rulesets", 405, "changed at /.settings/"),
        ("GET", "/namespaces/demo/others", 404, "append .json"),
        ("GET", "/.inspect/coverage?ns=demo", 501, "coverage of rules is not recorded"),
        ("GET", "/.inspect/coverage.json?ns=demo", 501, "coverage of rules is not recorded"),
        ("GET", "/.settings/profile.json", 501, "profile is not supported"),
        ("GET", "/.settings/nothing.json", 404, "There is no setting 'nothing'"),
        ("GET", "/.settings/rules", 404, "append .json"),
        ("DELETE", "/.settings/rules.json", 405, "GET and replaced with PUT"),
      ] {
        let answer = try await server.rest(method, target, body: "{}", headers: Self.owner)
        #expect(answer.status == status, "\(method) \(target)")
        #expect(try error(answer)?.contains(text) == true, "\(answer.body)")
      }
    }
  }

  @Test("The write size limit and trigger validation are stored")
  func values() async throws {
    try await RealtimeTestServer.run { server in
      for (name, before, value, after) in [
        ("defaultWriteSizeLimit", "\"unlimited\"", "\"small\"", "\"small\""),
        ("strictTriggerValidation", "{\"value\":true}", "false", "{\"value\":false}"),
      ] {
        let target = "/.settings/\(name).json"
        #expect(try await server.rest("GET", target, headers: Self.owner).body == before)
        let answer = try await server.rest("PUT", target, body: value, headers: Self.owner)
        #expect(answer.status == 200 && answer.body == value)
        #expect(try await server.rest("GET", target, headers: Self.owner).body == after)
        for bad in ["\"tiny\"", "7", "", "{"] {
          #expect(try await server.rest("PUT", target, body: bad, headers: Self.owner).status == 400)
        }
      }
    }
  }

  @Test(
    "Rulesets are stored by id; labelling a ruleset as stable replaces the rules, atomically and durably")
  func rulesets() async throws {
    try await RealtimeTestServer.run { server in
      func send(_ method: String, _ target: String, _ body: String? = nil) async throws -> (Int, JSONValue) {
        let answer = try await server.rest(method, target, body: body, headers: Self.owner)
        return (answer.status, try JSONValue(json: answer.body))
      }
      func add(_ rules: String) async throws -> String {
        let (status, answer) = try await send("POST", "/.settings/rulesets.json?ns=demo", rules)
        #expect(status == 200)
        return try #require(answer["id"]?.string)
      }
      let labels = "/.settings/ruleset_labels.json?ns=demo"
      #expect(try await send("GET", "/namespaces/demo/ruleset_labels").1 == .object([:]))
      #expect(try await send("GET", "/namespaces/demo/rulesets").1 == .object(["rulesets": .array([])]))
      let (first, second) = (
        try await add(Self.text), try await add(#"{"rules":{".read":true,".write":true}}"#)
      )
      #expect(first != second)
      // Storing a ruleset does not change the rules in force.
      let database = try await server.engine.database("demo")
      #expect(try await database.rules() == nil)
      let (status, ruleset) = try await send("GET", "/namespaces/demo/rulesets/\(first)")
      #expect(status == 200 && ruleset["id"]?.string == first && ruleset["source"]?.string == Self.text)
      #expect(ruleset["createdAt"]?.string?.hasPrefix("20") == true)
      let listed = try await send("GET", "/namespaces/demo/rulesets").1["rulesets"]?.array ?? []
      #expect(listed.compactMap { $0["id"]?.string } == [first, second])
      // Sets the labels like the Firebase command line tool: releases one ruleset, then another with a
      // canary.
      let (releaseStatus, releaseResponse) = try await send("PUT", labels, "{\"stable\":\"\(first)\"}")
      #expect(releaseStatus == 200 && releaseResponse["warning"] == nil)
      #expect(try await database.rules()?.text == Self.text)
      #expect(try await database.rules()?.hasIndex(on: .child("due"), at: "notes") == true)
      let (canaryStatus, canaryResponse) = try await send(
        "PUT", labels, "{\"stable\":\"\(second)\",\"canary\":\"\(first)\"}")
      #expect(canaryStatus == 200 && canaryResponse["warning"] == nil)
      #expect(try await database.rules()?.root.read == .constant(true))
      let both = JSONValue.object(["stable": .string(second), "canary": .string(first)])
      #expect(try await send("GET", labels).1 == both)
      #expect(try await send("GET", "/namespaces/demo/ruleset_labels").1 == both)
      // Another engine on the same store has the same labels, like a server after a restart.
      let engine = RealtimeEngine(store: server.store, policy: OpenPolicy())
      let reopened = try await engine.database("demo")
      #expect(
        try await reopened.rulesetLabels(as: .administrator) == RulesetLabels(stable: second, canary: first))
      #expect(try await reopened.rulesets(as: .administrator).map(\.source).first == Self.text)
      #expect(try await reopened.rules()?.root.read == .constant(true))
      await engine.shutdown()
      // Rules that are set directly belong to no ruleset, so the stable label disappears.
      #expect(
        try await server.rest(
          "PUT", "/.settings/rules.json?ns=demo", body: Self.text, headers: Self.owner
        ).status == 200)
      #expect(try await send("GET", labels).1 == .object(["canary": .string(first)]))
    }
  }

  @Test(
    "Invalid rulesets, labels of missing rulesets and unauthorized callers change nothing; old rulesets are removed"
  )
  func badRulesets() async throws {
    try await RealtimeTestServer.run { server in
      let (rulesets, labels) = ("/.settings/rulesets.json?ns=demo", "/.settings/ruleset_labels.json?ns=demo")
      let bad = try await server.rest("POST", rulesets, body: "{\"rules\":1}", headers: Self.owner)
      #expect(bad.status == 400)
      #expect(try error(bad)?.hasPrefix("1:10: ") == true, "\(bad.body)")
      for body in [#"{"stable":"none"}"#, #"{"other":"x"}"#, #"{"stable":7}"#, "[]", "{"] {
        let answer = try await server.rest("PUT", labels, body: body, headers: Self.owner)
        #expect(answer.status == 400, "\(body)")
      }
      #expect(
        try await server.rest("GET", "/namespaces/demo/rulesets/none", headers: Self.owner).status == 404)
      for (method, target) in [
        ("POST", rulesets), ("PUT", labels), ("GET", "/namespaces/demo/rulesets"), ("GET", labels),
        ("POST", "/.settings/functionTriggers.json"), ("GET", "/.settings/functionTriggers.json"),
      ] {
        let trigger = #"{"name":"n","path":"/","event":"e.write","topic":"t"}"#
        let body = target == rulesets ? #"{"rules":{}}"# : method == "PUT" ? "{}" : trigger
        let answer = try await server.rest(method, target, body: body)
        #expect(answer.status == 401, "\(method) \(target): \(answer.body)")
      }
      #expect(try await server.engine.namespaces().isEmpty)
      // Beyond the maximum number the oldest rulesets are removed, except those with a label.
      let database = try await server.engine.database("demo")
      let rules = try RulesFile(Array(Self.text.utf8))
      let first = try await database.addRuleset(rules, as: .administrator)
      _ = try await database.setRulesetLabels(RulesetLabels(canary: first), as: .administrator)
      let second = try await database.addRuleset(rules, as: .administrator)
      for _ in 0..<64 { _ = try await database.addRuleset(rules, as: .administrator) }
      let remaining = try await database.rulesets(as: .administrator)
      #expect(remaining.count == 64 && remaining.first?.id == first)
      #expect(try await database.ruleset(second, as: .administrator) == nil)
    }
  }

  @Test("Function triggers are stored and listed as not executed")
  func functionTriggers() async throws {
    try await RealtimeTestServer.run { server in
      let target = "/.settings/functionTriggers.json?ns=demo"
      func v1(_ path: String) -> String {
        #"{"name":"projects/p/locations/_/functions/f","path":"\#(path)","#
          + #""event":"providers/google.firebase.database/eventTypes/ref.write","topic":"projects/p/topics/f"}"#
      }
      let v2 =
        #"{"name":"projects/p/locations/us-central1/triggers/g","path":"c/{d}","#
        + #""event":"google.firebase.database.ref.v1.created","topic":"projects/p/topics/g","namespacePattern":"*"}"#
      for body in [v1("/old"), v1("/a/{b}"), v2] {
        let answer = try await server.rest("POST", target, body: body, headers: Self.owner)
        #expect(answer.status == 200, "\(answer.body)")
        let warning = try JSONValue(json: answer.body)["warning"]?.string
        #expect(warning?.contains("nothing runs it") == true)
      }
      // A trigger replaces an existing one with the same name.
      #expect(try await server.rest("GET", target, headers: Self.owner).body == "[\(v1("/a/{b}")),\(v2)]")
      for bad in [
        "[]", "{}", #"{"name":"n","path":"/","event":"ref.read","topic":"t"}"#,
        #"{"name":"n","path":"/","event":"ref.write"}"#,
        #"{"name":"n","path":"/","event":"ref.write","topic":"t","namespacePattern":7}"#,
        #"{"name":"\#(String(repeating: "n", count: 20_000))","path":"/","event":"ref.write","topic":"t"}"#,
      ] {
        #expect(try await server.rest("POST", target, body: bad, headers: Self.owner).status == 400)
      }
      let engine = RealtimeEngine(store: server.store, policy: OpenPolicy())
      let reopened = try await engine.database("demo")
      let kept = try await reopened.functionTriggers(as: .administrator)
      #expect(kept.map(\.path) == ["/a/{b}", "c/{d}"])
      #expect(kept.map(\.namespacePattern) == [nil, "*"])
      await engine.shutdown()
    }
  }

  @Test("A write beyond the size limit of its request or of the database is rejected and changes nothing")
  func writeSizeLimit() async throws {
    try await RealtimeTestServer.run { server in
      let limit = 100_000
      let wide = Node.object((0..<limit).map { (ChildKey("k\($0)"), .leaf(.int(1))) })
      let database = try await server.engine.database("127")
      _ = try await database.set("wide", to: wide, as: .administrator)
      let tooBig = RealtimeError.writeTooBig.message
      // Values that a write removes count towards its size like values that it adds.
      #expect(try await server.rest("DELETE", "/wide.json?writeSizeLimit=tiny").status == 200)
      _ = try await database.set("wide", to: wide, as: .administrator)
      for (method, target, body) in [
        ("PUT", "/wide.json", "1"), ("PATCH", "/.json", #"{"wide":null,"x":1}"#),
        ("PATCH", "/.json", #"{"wide/k1":1,"wide":{}}"#),
      ] {
        let answer = try await server.rest(method, target + "?writeSizeLimit=tiny", body: body)
        #expect(answer.status == 400, "\(method) \(body)")
        if body.contains("k1") { continue }
        #expect(try error(answer) == tooBig)
      }
      #expect(try await database.getShallow("/", as: .administrator) == .children(["wide"]))
      #expect(try await server.rest("PUT", "/wide/k1.json?writeSizeLimit=tiny", body: "2").status == 200)
      // The database's limit applies to requests that name no limit.
      #expect(
        try await server.rest(
          "PUT", "/.settings/defaultWriteSizeLimit.json", body: "\"small\"", headers: Self.owner
        ).status == 200)
      #expect(try await server.rest("PUT", "/wide/k2.json", body: "2").status == 200)
      #expect(try await server.rest("DELETE", "/wide.json?print=silent").status == 204)
    }
  }

  @Test("A read that exceeds its timeout is rejected")
  func timeout() async throws {
    try await RealtimeTestServer.run { server in
      let database = try await server.engine.database("127")
      let wide = Node.object((0..<40_000).map { (ChildKey("k\($0)"), .leaf(.string("value \($0)"))) })
      _ = try await database.set("wide", to: wide, as: .administrator)
      let late = try await server.rest("GET", "/wide.json?timeout=1ms")
      #expect(late.status == 400)
      #expect(try error(late) == RealtimeError.timedOut.message)
      #expect(try await server.rest("GET", "/wide.json?timeout=3min&shallow=true").status == 200)
      #expect(try await server.rest("GET", "/wide/k7.json?timeout=10s").body == "\"value 7\"")
      await #expect(throws: RealtimeError.timedOut) {
        _ = try await database.get("wide", as: .nobody, until: .now)
      }
    }
  }
}
