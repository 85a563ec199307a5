// Settings of a database over REST: rules and the class of its writes.

import Endpoints
import NIOCore
import OrderedStore
import RealtimeEngine
import RealtimeModel
import Testing

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
    "Rules are served as they were written, comments and all, or as plain JSON, and outlive the process's memory"
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
      let said = try JSONValue(json: answer.body)
      #expect(said["status"]?.string == "ok")
      #expect(said["warning"]?.string?.contains("not enforced") == true)
      #expect(
        try await server.rest("GET", "/.settings/rules.json?ns=demo", headers: Self.owner).body == Self.text)
      let strict = try await server.rest(
        "GET", "/.settings/rules.json?ns=demo&format=strict", headers: Self.owner)
      #expect(
        strict.body == #"{"rules":{"notes":{".indexOn":"due"},".read":"auth != null",".write":true}}"#)
      // A second engine over the same store, as after a restart; another namespace is not concerned.
      let engine = RealtimeEngine(store: server.store, policy: EmulatorPolicy())
      #expect(try await engine.database("demo").rules()?.text == Self.text)
      #expect(try await engine.database("other").rules() == nil)
      #expect(try await engine.namespacesWithUnenforcedRules() == ["demo"])
      await engine.shutdown()
    }
  }

  @Test("Rules that would refuse nothing are taken without a warning")
  func openRules() async throws {
    try await RealtimeTestServer.run { server in
      let answer = try await server.rest(
        "PUT", "/.settings/rules.json", body: #"{"rules":{".read":true,".write":true}}"#, headers: Self.owner)
      #expect(answer.status == 200 && answer.body == #"{"status":"ok"}"#)
      #expect(try await server.engine.namespacesWithUnenforcedRules().isEmpty)
    }
  }

  @Test("Rules may begin with a byte-order mark")
  func byteOrderMark() throws {
    #expect(try RulesFile(Array(("\u{FEFF}" + Self.text).utf8)).text == Self.text)
    let error = #expect(throws: RulesError.self) { try RulesFile(Array("\u{FEFF}{x".utf8)) }
    #expect(error?.description.hasPrefix("1:2: ") == true, "\(String(describing: error))")
  }

  @Test("Bad rules are answered with their places and leave those before in force; a dry run changes nothing")
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
            == "3:22: Parse error: expected an operand, found the end.\n4:10: Expected an object of rules.\n")
      }
      let dry = try await server.rest(
        "PUT", rules + "?dryRun=true", body: #"{"rules":{}}"#, headers: Self.owner)
      #expect(dry.status == 200)
      #expect(try await server.rest("GET", rules, headers: Self.owner).body == Self.text)
    }
  }

  @Test("Settings are for administrators")
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
    try await RealtimeTestServer.run(policy: ProductionPolicy(), authentication: .refuseAll) { server in
      let answer = try await server.rest(
        "PUT", "/.settings/rules.json", body: Self.text, headers: Self.owner)
      #expect(answer.status == 401)
    }
  }

  @Test("What is not there, or not yet, is refused by name")
  func unknown() async throws {
    try await RealtimeTestServer.run { server in
      for (method, target, status, text) in [
        ("POST", "/.settings/rulesets.json", 501, "rulesets is not supported"),
        ("PUT", "/.settings/ruleset_labels.json", 501, "ruleset_labels is not supported"),
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

  @Test("The class of writes and the checking of triggers are kept")
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

  @Test("A write beyond its class, or the database's, is refused and changes nothing")
  func writeSizeLimit() async throws {
    try await RealtimeTestServer.run { server in
      let most = 100_000
      let wide = Node.object((0..<most).map { (Key("k\($0)"), .leaf(.int(1))) })
      let database = try await server.engine.database("127")
      _ = try await database.set("wide", to: wide, as: .administrator)
      let tooBig = RealtimeError.writeTooBig.message
      // The values that go count as well as those that come.
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
      // The database's own class holds where a request names none.
      #expect(
        try await server.rest(
          "PUT", "/.settings/defaultWriteSizeLimit.json", body: "\"small\"", headers: Self.owner
        ).status == 200)
      #expect(try await server.rest("PUT", "/wide/k2.json", body: "2").status == 200)
      #expect(try await server.rest("DELETE", "/wide.json?print=silent").status == 204)
    }
  }

  @Test("A read that takes longer than its timeout is refused")
  func timeout() async throws {
    try await RealtimeTestServer.run { server in
      let database = try await server.engine.database("127")
      let wide = Node.object((0..<200_000).map { (Key("k\($0)"), .leaf(.string("value \($0)"))) })
      _ = try await database.set("wide", to: wide, as: .administrator)
      let late = try await server.rest("GET", "/wide.json?timeout=1ms")
      #expect(late.status == 400)
      #expect(try error(late) == RealtimeError.timedOut.message)
      #expect(try await server.rest("GET", "/wide.json?timeout=3min&shallow=true").status == 200)
      #expect(try await server.rest("GET", "/wide/k7.json?timeout=10s").body == "\"value 7\"")
      await #expect(throws: RealtimeError.timedOut) {
        _ = try await database.get("wide", as: .anonymous, until: .now)
      }
    }
  }
}
