// A recorded request holds what a decision read, so that other rules can decide the same request later.

import Access
import FirestoreModel
package import JSON
import RealtimeModel

/// A request with everything that its decision read.
package enum RecordedRequest: Sendable {
  /// A request to Cloud Firestore.
  case firestore(RecordedFirestoreRequest)
  /// A request to the Realtime Database.
  case realtime(RecordedTreeRequest)

  /// The approximate size of the read data, in bytes.
  package var bytes: Int {
    switch self {
    case .firestore(let request): request.bytes
    case .realtime(let request): request.bytes
    }
  }
}

/// The result of deciding a recorded request by other rules.
package enum ReplayedDecision: Sendable {
  /// The rules allow it.
  case allowed
  /// The rules deny it.
  case denied(ExplainedDecision?)
  /// The rules read these documents or locations, which the recorded decision has not read.
  case unknown([String])

  /// The decision as JSON.
  package var json: JSONObject {
    switch self {
    case .allowed: return ["verdict": .string("ALLOW")]
    case .denied(let decision):
      var object: JSONObject = ["verdict": .string("DENY")]
      if let decision { object["decision"] = decision.json }
      return object
    case .unknown(let missing):
      return ["verdict": .string("UNKNOWN"), "notRecorded": .array(missing.map { .string($0) })]
    }
  }
}

/// Data that a replayed decision needs and that was not recorded.
struct UnrecordedRead: Error {
  let name: String
}

/// A recorded request to Cloud Firestore.
package struct RecordedFirestoreRequest: Sendable {
  /// The part of the operation that contains the denied document. The rules decide a large operation in several parts.
  let part: FirestoreRulesPolicy.Part
  let database: DatabaseName
  let principal: Principal
  let time: Timestamp
  /// The documents that the rules looked up.
  let lookups: [RecordedDocuments.Key: MapValue?]
  /// The approximate size of the documents, in bytes.
  let bytes: Int

  /// Decides the request by a ruleset.
  package func decide(by ruleset: FirestoreRuleset) -> ReplayedDecision {
    var context = FirestoreRulesPolicy.context(
      principal, database, time, RecordedDocuments(source: nil, recorded: lookups))
    context.resume(with: part)
    // The policy divides decisions so that other operations need not wait. A replay delays none.
    context.isDivisible = false
    do {
      let decision = try ruleset.decide(part.operation, context)
      if let failure = decision.failure { throw failure }
      if decision.isAllowed { return .allowed }
      return .denied(try ruleset.explain(part.operation, context).map { ExplainedDecision($0) })
    } catch let error as UnrecordedRead { return .unknown([error.name]) } catch {
      return .unknown(["\(error)"])
    }
  }
}

/// Provides the documents that rules look up. With a source it reads and records them; without a source it returns
/// recorded documents only.
final class RecordedDocuments: RuleDocumentSource {
  struct Key: Hashable {
    let path: ResourcePath
    let afterWrites: Bool
  }

  private let source: (any RuleDocumentSource)?
  private(set) var recorded: [Key: MapValue?]

  /// - Parameter source: the documents to read and record; nil to return recorded documents only.
  init(source: (any RuleDocumentSource)?, recorded: [Key: MapValue?] = [:]) {
    self.source = source
    self.recorded = recorded
  }

  func fields(of path: ResourcePath, afterWrites: Bool) throws -> MapValue? {
    let key = Key(path: path, afterWrites: afterWrites)
    if let fields = recorded[key] { return fields }
    guard let source else { throw UnrecordedRead(name: path.description) }
    let fields = try source.fields(of: path, afterWrites: afterWrites)
    recorded[key] = .some(fields)
    return fields
  }
}

/// A recorded request to the Realtime Database.
package struct RecordedTreeRequest: Sendable {
  let operation: TreeOperation
  let principal: Principal
  let time: Int64
  let answers: [RecordedTree.Key: RecordedTree.Answer]
  /// The approximate size of the answers, in bytes.
  let bytes: Int

  /// Decides the request by a ruleset.
  package func decide(by ruleset: RealtimeRuleset) -> ReplayedDecision {
    let view = RecordedTree(source: nil, now: time, answers: answers)
    do {
      let decision = try ruleset.decide(principal, operation, view: view)
      if decision.denial == nil { return .allowed }
      return .denied(try ruleset.inspection.explain(operation, of: principal, view: view))
    } catch let error as UnrecordedRead { return .unknown([error.name]) } catch {
      return .unknown(["\(error)"])
    }
  }
}

/// A view of a tree. With a source it reads and records locations; without a source it returns recorded locations only.
final class RecordedTree: TreeView {
  /// Identifies a recorded read: a location, its state, and what was read of it.
  struct Key: Hashable {
    enum Question: Hashable {
      case content
      case priority
      case childKeys(after: ChildKey?, limit: Int)
    }

    let path: Path
    let state: TreeState
    let question: Question
  }

  /// The result of a recorded read.
  enum Answer: Sendable {
    case content(Node.Content)
    case priority(Priority?)
    case childKeys([ChildKey])

    /// The approximate size in bytes.
    var bytes: Int {
      switch self {
      case .content(.leaf(.string(let text))): 64 + text.utf8.count
      case .content, .priority: 64
      case .childKeys(let keys): keys.reduce(64) { $0 + 16 + $1.text.utf8.count }
      }
    }
  }

  let now: Int64
  private let source: (any TreeView)?
  private(set) var answers: [Key: Answer]
  private(set) var bytes = 0

  /// - Parameter source: the view to read and record; nil to return recorded locations only.
  init(source: (any TreeView)?, now: Int64, answers: [Key: Answer] = [:]) {
    self.source = source
    self.now = now
    self.answers = answers
  }

  private func answer(
    _ path: Path, _ state: TreeState, _ question: Key.Question, _ read: (any TreeView) throws -> Answer
  ) throws -> Answer {
    let key = Key(path: path, state: state, question: question)
    if let answer = answers[key] { return answer }
    guard let source else { throw UnrecordedRead(name: "/\(path)") }
    let answer = try read(source)
    answers[key] = answer
    bytes += answer.bytes + path.keyBytes
    return answer
  }

  func content(at path: Path, _ state: TreeState) throws -> Node.Content {
    let answer = try answer(path, state, .content) { .content(try $0.content(at: path, state)) }
    guard case .content(let content) = answer else { throw UnrecordedRead(name: "/\(path)") }
    return content
  }

  func priority(at path: Path, _ state: TreeState) throws -> Priority? {
    let answer = try answer(path, state, .priority) { .priority(try $0.priority(at: path, state)) }
    guard case .priority(let priority) = answer else { throw UnrecordedRead(name: "/\(path)") }
    return priority
  }

  func childKeys(at path: Path, after key: ChildKey?, limit: Int, _ state: TreeState) throws -> [ChildKey] {
    let answer = try answer(path, state, .childKeys(after: key, limit: limit)) {
      .childKeys(try $0.childKeys(at: path, after: key, limit: limit, state))
    }
    guard case .childKeys(let keys) = answer else { throw UnrecordedRead(name: "/\(path)") }
    return keys
  }
}
