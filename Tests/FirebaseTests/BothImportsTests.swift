// Tests importing both the umbrella module `Firebase`, which exports several products, and one product: names that both
// export are not ambiguous.

import Firebase
import FirebaseFirestore
import Foundation
import Testing

@Suite("Umbrella and product imports") struct BothImportsTests {
  @Test("an error code matches when both modules are imported")
  func errorCodeMatches() {
    let error: any Error = NSError(domain: FirestoreErrorDomain, code: 5)
    do { throw error } catch FirestoreErrorCode.notFound {} catch { Issue.record("no match") }
  }
}
