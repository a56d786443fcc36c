// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Test} from "./Test.sol";

/// @notice Deploys contracts from their artifacts. So tests run what is deployed for real, compiled by its own settings, and don't carry
/// its code in theirs.
abstract contract Deployer is Test {
    /// @param artifact As `File.sol:Name`.
    /// @param arguments ABI-encoded constructor arguments.
    function deploy(string memory artifact, bytes memory arguments) internal returns (address deployed) {
        bytes memory code = bytes.concat(vm.getCode(artifact), arguments);
        assembly ("memory-safe") {
            deployed := create(0, add(code, 32), mload(code))
        }
        assertTrue(deployed != address(0), artifact);
    }
}
