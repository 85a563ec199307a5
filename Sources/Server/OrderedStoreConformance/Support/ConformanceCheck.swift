// Conformance checks test properties of the OrderedStore contract. Each check opens an empty store and
// derives all random choices from a seed. The tests of every implementation run all checks:
//
//   @Test(arguments: ConformanceCheck.all)
//   func conforms(_ check: ConformanceCheck) async throws {
//     try await check.run(MySubject(), seed: 1)
//   }

public import OrderedStore

/// The store under test, which can be opened and closed repeatedly over the same data.
public protocol StoreSubject: Sendable {
  /// Opens the store: empty the first time, later with the data of the store that was closed.
  func open(_ options: StoreOptions) async throws -> any OrderedStore

  /// Deletes the history of an open store that is older than the history windows now. A store also does so in
  /// the background, at times that a check cannot control.
  func trim(_ store: any OrderedStore) async throws
}

/// One property of the contract.
public struct ConformanceCheck: Sendable, CustomStringConvertible {
  /// The property as a statement.
  public let name: String
  private let body: @Sendable (ConformanceRun) async throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (ConformanceRun) async throws -> Void) {
    self.name = name
    self.body = body
  }

  /// Checks a subject that has not been opened before.
  ///
  /// - Parameter seed: determines every random choice of the check. Failure messages contain it.
  /// - Throws: ``ConformanceFailure`` where the store breaks the contract, or an unexpected error of the store.
  public func run(_ subject: some StoreSubject, seed: UInt64) async throws {
    let run = ConformanceRun(subject, seed: seed)
    do {
      try await body(run)
    } catch let failure as ConformanceFailure {
      throw ConformanceFailure("\(name) (seed \(seed)): \(failure.message)")
    }
  }

  /// The name of the check.
  public var description: String { name }

  /// Every property of the contract.
  public static let all: [ConformanceCheck] =
    ordering + limits + past + sequencing + inFlight + validation + isolation + log + retention + restart
    + catalogue + provisional
}

/// A violation of the contract.
public struct ConformanceFailure: Error, CustomStringConvertible {
  /// The actual and the expected result.
  public let message: String

  init(_ message: String) { self.message = message }

  /// The message of the failure.
  public var description: String { message }
}

/// Throws unless `condition` holds.
func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
  if !condition { throw ConformanceFailure(message()) }
}

/// Throws unless both values are equal.
func expectEqual<Value: Equatable>(_ actual: Value, _ expected: Value, _ subject: @autoclosure () -> String)
  throws
{
  if actual != expected { throw ConformanceFailure("\(subject()): saw \(actual), expected \(expected)") }
}

/// Throws unless `body` throws a store error with a given code.
func expectError(_ code: StoreError.Code, _ subject: String, _ body: () async throws -> Void) async throws {
  do {
    try await body()
  } catch let error as StoreError {
    return try expect(error.code == code, "\(subject): threw \(error), expected \(code.rawValue)")
  }
  throw ConformanceFailure("\(subject): nothing was thrown, expected \(code.rawValue)")
}
