// Matches errors against Firestore's codes in files that import only `Firebase`. An operator cannot be exported by
// name, so this module declares its own, which yields to FirebaseFirestore's operator where both are visible.

import Foundation

extension FirestoreErrorCode.Code {
  /// Lets `switch` and `catch` match a code against any error.
  @_disfavoredOverload
  public static func ~= (match: FirestoreErrorCode.Code, error: any Error) -> Bool {
    let object = error as NSError
    return object.domain == FirestoreErrorDomain && object.code == match.rawValue
  }
}
