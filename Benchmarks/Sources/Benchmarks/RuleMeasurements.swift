// Cloud Firestore under security rules: the same load of anonymous clients under rules of usual size, and under rules that
// allow everything. The ratio is the cost of deciding.

import Foundation

/// The rules of a measurement.
enum BenchmarkRules: String {
  /// Allow everything without a condition.
  case open
  /// Check types, lengths, keys and the change of a document, as published examples do.
  case typical
  /// Evaluate some 900 expressions, which is close to the limit.
  case heavy
  /// Allow items without a condition, and use up the budget for writes of `attacks`.
  case exhausting

  /// The text of the rules file.
  var text: String {
    switch self {
    case .open:
      return """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents { match /{path=**} { allow read, write; } }
        }
        """
    case .typical:
      return """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            function isMember() { return request.auth == null || request.auth.token.member == true; }
            function isItem(data) {
              return data.keys().hasAll(['title', 'owner', 'state'])
                && data.keys().hasOnly(['title', 'owner', 'state', 'rank', 'price', 'done', 'note', 'group'])
                && data.title is string && data.title.size() < 100 && data.state in ['open', 'done', 'late']
                && data.rank is int && data.price >= 0.0;
            }
            match /users/{user} { allow read, write: if request.auth.uid == user; }
            match /items/{item} {
              allow get: if isMember() && (resource == null || resource.data.state in ['open', 'done', 'late']);
              allow list: if isMember() && resource.data.owner is string && resource.data.owner.size() < 100;
              allow create: if isMember() && isItem(request.resource.data);
              allow update: if isMember() && isItem(request.resource.data)
                && request.resource.data.diff(resource.data).affectedKeys().hasOnly(['title', 'state', 'note']);
            }
          }
        }
        """
    case .heavy:
      let fields = ["title", "owner", "state", "note"]
      // A condition takes 25 expressions, and a longer chain of them would be too deep.
      let conditions = (0..<36).map { index in
        let field = "request.resource.data.\(fields[index % fields.count])"
        return "\(field) is string && \(field).size() < \(1000 + index) && \(field) != 'x\(index)'"
      }
      let functions = (0..<9).map { index in
        "function f\(index)() { return \(conditions[4 * index..<4 * index + 4].joined(separator: " && ")); }"
      }
      return """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents/items/{item} {
            \(functions.joined(separator: "\n"))
            allow create: if \((0..<9).map { "f\($0)()" }.joined(separator: " && "));
          }
        }
        """
    case .exhausting:
      let conditions = Array(repeating: "long().matches('(a*)*(a|b)*c')", count: 20)
      return """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            function long() { return '\(String(repeating: "a", count: 200_000))'; }
            match /items/{item} { allow read, write; }
            match /attacks/{attack} { allow write: if \(conditions.joined(separator: " || ")); }
          }
        }
        """
    }
  }

  /// Starts a server on a directory with these rules.
  /// - Parameter isEmulator: whether to start an emulator, which counts the coverage of rules.
  func serve(_ directory: String, _ setting: Setting, isEmulator: Bool) throws -> ChildProcess {
    let base = URL(fileURLWithPath: directory)
    try Data(text.utf8).write(to: base.appendingPathComponent("firestore.rules"))
    let configuration = base.appendingPathComponent("firebase.json")
    try Data(#"{"firestore":{"rules":"firestore.rules"}}"#.utf8).write(to: configuration)
    return try setting.startHearth(
      [
        "--data", base.appendingPathComponent("data").path, "--config", configuration.path, "--project",
        "bench",
      ], database: false, isEmulator: isEmulator)
  }
}

/// Durable commits per second of new documents by 64 clients under rules.
func commitsUnder(_ rules: BenchmarkRules, _ setting: Setting, isEmulator: Bool = false) async throws
  -> Double
{
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try rules.serve(directory, setting, isEmulator: isEmulator)
  defer { server.stop() }
  return try await commitRate(server, setting)
}

/// GetDocument calls per second under rules, 8 connections with 16 calls in flight each.
func getsUnder(_ rules: BenchmarkRules, _ setting: Setting, isEmulator: Bool = false) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try rules.serve(directory, setting, isEmulator: isEmulator)
  defer { server.stop() }
  return try await storedDocumentRate(server, setting)
}

/// Listens to queries that become current per second under rules, ten on a stream.
func listensUnder(_ rules: BenchmarkRules, _ setting: Setting) async throws -> Double {
  let directory = try setting.temporaryDirectory()
  defer { try? FileManager.default.removeItem(atPath: directory) }
  let server = try rules.serve(directory, setting, isEmulator: false)
  defer { server.stop() }
  let (connections, perStream, together) = (8, 10, 32)
  let load = try await ListenLoad.connect(server, setting, connections: connections)
  let start = ContinuousClock.now
  var streams = 0
  // The server accepts 1,000 streams on a connection.
  while (ContinuousClock.now - start).seconds < setting.seconds, streams < 900 * connections {
    for number in streams..<streams + together {
      try await load.open(stream: number, targets: number * perStream..<(number + 1) * perStream)
    }
    streams += together
    try await load.wait(for: streams * perStream)
  }
  let seconds = (ContinuousClock.now - start).seconds
  guard load.removed == 0 else { throw BenchmarkFailure("\(load.removed) listens were denied") }
  await load.close()
  return Double(streams * perStream) / seconds
}
