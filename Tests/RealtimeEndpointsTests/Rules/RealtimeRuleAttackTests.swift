// Tests attacks of many kinds on the rules of the Realtime Database, over all transports of a real server. No attack may
// succeed.

import Testing

@testable import EndpointFixture

@Suite("Attacks on Realtime Database rules", .timeLimit(.minutes(3)), .serialized)
struct RealtimeRuleAttackTests {
  static let rules = #"""
    {"rules": { /* topsecret0 */
      "open": {".read": true, ".write": true},
      "users": {"$uid": {
        ".read": "auth.uid == $uid", ".write": "auth.uid == $uid", ".validate": "newData.hasChildren(['name'])",
        "name": {".validate": "newData.isString() && newData.val().length <= 5"},
        "role": {".validate": "newData.val() == data.val()"},
        "age": {".validate": "newData.isNumber() && newData.val() >= 0 && newData.val() <= 150"},
        "$other": {".validate": false}}},
      "count": {".write": true, ".validate": "newData.val() == data.val() + 1"},
      "inbox": {".write": true},
      "list": {".indexOn": "owner", ".read":
        "query.orderByChild == 'owner' && query.equalTo == auth.uid && query.limitToFirst <= 10"},
      "rooms": {"$r": {
        ".read": "root.child('members/' + $r + '/' + auth.uid).exists()",
        ".write": "newData.parent().parent().child('members/' + $r + '/' + auth.uid).val() == true"}},
      "members": {"$r": {"$u": {".write": "root.child('admins').child(auth.uid).exists()"}}},
      "é": {".read": true},
      "post": {"$id": {".write": "!data.exists()", ".validate": "newData.child('at').val() == now"}},
      "frozen": {".write": "newData.exists() && newData.hasChild('a')"},
      "plain": {".read": true, ".write": true, ".validate": "newData.getPriority() == null"},
      "strict": {".write": true, "$k": {".validate": "$k.matches(/^[a-z]+$/) && newData.isString()"}},
      "number": {".write": true, ".validate": "newData.isNumber() && newData.val() < 100"},
      "short": {".write": true, ".validate": "newData.isString() && newData.val().length <= 4"},
      "letters": {".write": true, ".validate": "newData.val().matches(/^[a-z]+$/i)"}
    }}
    """#

  static let data = #"""
    {"open": {"x": 1}, "secret": {"a": "topsecret1", "b": {"c": "topsecret2"}},
     "users": {"u1": {"name": "ann", "role": "user", "age": 30}, "u2": {"name": "topsecret3", "role": "admin"}},
     "count": 5, "inbox": {"m1": "topsecret4"}, "hidden": 41,
     "list": {"o1": {"owner": "u1", "v": 1}, "o2": {"owner": "u2", "v": "topsecret5"}},
     "rooms": {"r1": {"t": "topsecret6"}}, "members": {"r1": {"u2": true}}, "admins": {"u2": true},
     "é": "public", "e\u0301": "topsecret7", "post": {"p1": {"at": 1}}, "frozen": {"a": 1, "b": 2}, "plain": 1,
     "strict": {"abc": "x"}, "number": 5, "short": "abc", "letters": "abc"}
    """#

  @Test("No attack receives a secret, changes the tree, or confirms a guess", arguments: RuleAttack.groups)
  func attacks(group: String) async throws {
    try await RealtimeTestServer.run { server in
      let attacks = RuleAttack.all.filter { $0.group == group }
      for (number, attack) in attacks.enumerated() {
        let player = RuleAttackPlayer(
          server: server, namespace: "topsecret-\(number)", rules: Self.rules, data: Self.data)
        let success = try await player.play(attack)
        #expect(success == nil, "\(group): \(attack.name): \(success ?? "")")
      }
    }
  }

  @Test("There are at least a hundred attacks, each with its own name")
  func count() {
    print("attacks: \(RuleAttack.all.count) in \(RuleAttack.groups.count) classes")
    #expect(RuleAttack.all.count >= 100)
    #expect(Set(RuleAttack.all.map { Array(($0.group + $0.name).utf8) }).count == RuleAttack.all.count)
  }

  @Test("Requests that the rules permit are detected as attacks that succeed, so the tests can fail")
  func controls() async throws {
    let controls: [RuleAttack] = [
      RuleAttack("", "own value", secrets: ["ann"], .rest("GET", "/users/u1.json?NS")),
      RuleAttack("", "own write", .rest("PUT", "/users/u1/age.json?NS", "31")),
      RuleAttack("", "own socket", secrets: ["ann"], .send("q", #"{"p":"/users/u1","h":""}"#)),
      RuleAttack("", "own write at the end", .send("o", #"{"p":"/open/x","d":2}"#), .close),
      RuleAttack("", "own stream", secrets: ["ann"], .stream("/users/u1.json?NS")),
      RuleAttack("", "stale tag", .rest("PUT", "/open.json?NS", "1", ["If-Match: wrong"])),
      RuleAttack("", "right tag", .rest("GET", "/open.json?NS", nil, ["If-None-Match: RIGHT"])),
      RuleAttack("", "stale hash", .send("p", #"{"p":"/open","d":1,"h":"wrong"}"#)),
      RuleAttack(
        "", "permitted query", secrets: ["o1"],
        .rest("GET", #"/list.json?NS&orderBy=%22owner%22&equalTo=%22u1%22&limitToFirst=10"#)),
      RuleAttack(
        "", "room of two users", user: "u2", secrets: ["topsecret6"], .rest("GET", "/rooms/r1.json?NS")),
    ]
    try await RealtimeTestServer.run { server in
      for (number, control) in controls.enumerated() {
        let player = RuleAttackPlayer(
          server: server, namespace: "control-\(number)", rules: Self.rules, data: Self.data)
        let success = try await player.play(control)
        #expect(success != nil, "\(control.name)")
      }
    }
  }
}
