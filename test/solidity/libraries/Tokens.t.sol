// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Tokens} from "../../../contracts/libraries/Tokens.sol";
import {Test} from "../support/Test.sol";

/// @notice Answers balances and transfers with whatever bytes it was told, or reverts with them.
contract AnsweringToken {
    error Paused(uint256 until);

    bytes private _balance = abi.encode(7);
    bytes private _balanceAfter = abi.encode(12);
    bytes private _transfer = abi.encode(true);
    bool private _balanceFails;
    bool private _transferFails;
    bool private _moved;
    bytes public lastCall;

    function answerBalance(bytes calldata answer, bool fails) external {
        (_balance, _balanceFails) = (answer, fails);
    }

    function answerBalanceAfter(bytes calldata answer) external {
        _balanceAfter = answer;
    }

    function answerTransfer(bytes calldata answer, bool fails) external {
        (_transfer, _transferFails) = (answer, fails);
    }

    fallback(bytes calldata data) external returns (bytes memory answer) {
        bool asked = bytes4(data) == IERC20.balanceOf.selector;
        answer = asked ? (_moved ? _balanceAfter : _balance) : _transfer;
        if (asked ? _balanceFails : _transferFails) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        if (!asked) {
            _moved = true;
            lastCall = data;
        }
    }
}

/// @notice The library, callable.
contract TokensCaller {
    function balanceOf(address token, address account) external view returns (uint256) {
        return Tokens.balanceOf(token, account);
    }

    function pull(address token, address to, uint256 amount) external returns (uint256) {
        return Tokens.pull(token, to, amount);
    }

    function push(address token, address to, uint256 amount) external {
        Tokens.push(token, to, amount);
    }
}

/// @notice What tokens may answer, and what comes of other answers.
contract TokensTest is Test {
    address private constant TO = address(0x70);
    address private constant NO_CODE = address(0xDEAD);

    TokensCaller private _caller;
    AnsweringToken private _token;
    bytes[4] private _refusals = [abi.encode(false), abi.encode(2), bytes(hex"01"), bytes(new bytes(31))];

    function setUp() external {
        _caller = new TokensCaller();
        _token = new AnsweringToken();
    }

    function testFuzz_BalanceIsTheFirstWord(uint256 units, bytes32 more) external {
        _token.answerBalance(abi.encode(units, more), false);
        assertEq(_caller.balanceOf(address(_token), TO), units, "units");
    }

    function test_RevertWhen_TheBalanceIsNotAWord() external {
        _expectUnreadable(NO_CODE);
        _caller.balanceOf(NO_CODE, TO);
        bytes[2] memory short = [bytes(""), bytes(new bytes(31))];
        for (uint256 i = 0; i < short.length; ++i) {
            _token.answerBalance(short[i], false);
            _expectUnreadable(address(_token));
            _caller.balanceOf(address(_token), TO);
        }
    }

    function test_RevertWhen_TheBalanceIsRefused_WithTheTokensReason() external {
        bytes memory reason = abi.encodeWithSelector(AnsweringToken.Paused.selector, 99);
        _token.answerBalance(reason, true);
        vm.expectRevert(reason);
        _caller.balanceOf(address(_token), TO);
        vm.expectRevert(reason);
        _caller.pull(address(_token), TO, 5);
    }

    function test_PullTakesFromTheCallerAndCountsWhatArrived() external {
        assertEq(_caller.pull(address(_token), TO, 50), 5, "by the balance, not by the amount");
        bytes memory expected = abi.encodeCall(IERC20.transferFrom, (address(this), TO, 50));
        assertEq(keccak256(_token.lastCall()), keccak256(expected), "call");
    }

    function test_PullOfATokenThatAnswersNothing() external {
        _token.answerTransfer("", false);
        assertEq(_caller.pull(address(_token), TO, 5), 5, "received");
    }

    /// @dev A balance that fell is no income, and must not wrap around.
    function test_PullCountsNothingWhenTheBalanceFell() external {
        _token.answerBalanceAfter(abi.encode(6));
        assertEq(_caller.pull(address(_token), TO, 5), 0, "received");
    }

    function test_PushSendsFromHere() external {
        _caller.push(address(_token), TO, 50);
        assertEq(keccak256(_token.lastCall()), keccak256(abi.encodeCall(IERC20.transfer, (TO, 50))), "call");
        _token.answerTransfer("", false);
        _caller.push(address(_token), TO, 50);
    }

    function test_RevertWhen_ATransferAnswersAnythingButTrue() external {
        for (uint256 i = 0; i < _refusals.length; ++i) {
            _token.answerTransfer(_refusals[i], false);
            _expectFailed(address(_token));
            _caller.pull(address(_token), TO, 5);
            _expectFailed(address(_token));
            _caller.push(address(_token), TO, 5);
        }
    }

    function test_RevertWhen_ATransferIsRefused_WithTheTokensReason() external {
        bytes memory reason = abi.encodeWithSelector(AnsweringToken.Paused.selector, 99);
        _token.answerTransfer(reason, true);
        vm.expectRevert(reason);
        _caller.pull(address(_token), TO, 5);
        vm.expectRevert(reason);
        _caller.push(address(_token), TO, 5);
    }

    function test_RevertWhen_PullingWhatHasNoReadableBalance() external {
        _expectFailed(NO_CODE);
        _caller.pull(NO_CODE, TO, 5);
        _token.answerBalanceAfter(new bytes(31));
        _expectFailed(address(_token));
        _caller.pull(address(_token), TO, 5);
        _token.answerBalance(new bytes(31), false);
        _expectFailed(address(_token));
        _caller.pull(address(_token), TO, 5);
    }

    function _expectUnreadable(address token) private {
        vm.expectRevert(abi.encodeWithSelector(Tokens.BalanceUnreadable.selector, token));
    }

    function _expectFailed(address token) private {
        vm.expectRevert(abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, token));
    }
}
