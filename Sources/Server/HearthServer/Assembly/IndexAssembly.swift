// Gives the Firestore engine the indexes that the project's files choose, at the start and whenever it is told to.

import FirestoreEngine
import FirestoreModel
import Logging

extension HearthConfiguration {
  /// What each index file says, by database.
  /// - Throws: ``HearthError`` for the first file that cannot be read or is wrong.
  func readIndexes(log: Logger) throws(HearthError) -> [(
    database: String, indexes: DatabaseIndexConfiguration
  )] {
    var all: [(database: String, indexes: DatabaseIndexConfiguration)] = []
    for file in indexFiles {
      let bytes: [UInt8]?
      do {
        bytes = try ConfigurationFile.read(file.path)
      } catch {
        throw HearthError("The index file \(file.path) cannot be read: \(error)")
      }
      guard let bytes else {
        throw HearthError("The index file \(file.path), which firebase.json names, does not exist.")
      }
      let parsed = try IndexesJSON(
        bytes, path: file.path, dimensions: limits.firestore.data.vectorDimensions)
      for warning in parsed.warnings { log.warning("\(warning)") }
      all.append((file.database, parsed.configuration))
    }
    return all
  }
}

extension FirestoreEngine {
  /// Checks the indexes of all databases.
  func validate(_ all: [(database: String, indexes: DatabaseIndexConfiguration)]) throws(HearthError) {
    for (database, indexes) in all {
      do {
        try validate(indexes, ofDatabase: database)
      } catch {
        throw HearthError("The indexes of the database \(database) cannot be set: \(error.message)")
      }
    }
  }

  /// Chooses indexes by database. What is wrong in one of them changes nothing in any; a store that fails on the way leaves
  /// some as they were, and the error says which were set.
  func setIndexes(_ all: [(database: String, indexes: DatabaseIndexConfiguration)]) async throws(HearthError)
  {
    try validate(all)
    var done: [String] = []
    for (database, indexes) in all {
      do {
        try await setIndexes(indexes, ofDatabase: database)
      } catch {
        let others = done.isEmpty ? "" : ", those of \(done.joined(separator: ", ")) before it were"
        throw HearthError(
          "The indexes of the database \(database) could not be set everywhere\(others): \(error.message)")
      }
      done.append(database)
    }
  }
}
