// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Several calls in one transaction, for tests: a maker that is a contract, or that controls accounts with code.
contract Together {
    /// @notice Makes the calls one after the other; all of them or none.
    function all(address[] calldata targets, bytes[] calldata calls) external {
        for (uint256 i = 0; i < targets.length; ++i) {
            (bool done, ) = targets[i].call(calls[i]);
            require(done, "a call failed");
        }
    }
}
